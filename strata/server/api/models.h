#pragma once

#include <string>

#include "strata/server/services.h"

namespace strata::server {

// GET /v1/models: the one model there is, with the size of its context once that is known.
std::string list_models(const Services& services);

}  // namespace strata::server
