#pragma once

#include <string>

#include "strata/model/instance.h"
#include "strata/wire/messages.h"

namespace strata::engine {

// Why an engine on this instance cannot take the request at all; empty if it can.
std::string objection(const wire::Submit& submit, const model::Instance& instance);

// Whether there is a slot, and pages for all the tokens that the request may come to.
bool has_room(const wire::Submit& submit, const model::StatePools& pools);

}  // namespace strata::engine
