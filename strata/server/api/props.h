#pragma once

#include <string>

#include "strata/server/exchange.h"
#include "strata/server/services.h"

namespace strata::server {

// GET /props: what this server offers, in one object: model, context, slots, limits, what its chat
// template knows, and the settings that a request without fields gets.
Response props(const Services& services);

// GET /slots: what each slot does, and the answers that wait for one.
Response slots(const Services& services);

// POST /apply-template: the fields of a chat to {"prompt": text}, as the model would read it.
// Errors: as read_chat.
std::string apply_template(const std::string& body, const Services& services);

}  // namespace strata::server
