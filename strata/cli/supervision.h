#pragma once

#include "strata/cli/settings.h"
#include "strata/supervise/supervisor.h"

namespace strata::cli {

// How `serve` keeps its engine: with room for all requests that the server lets in.
supervise::Settings supervisor_settings(const Settings& settings);

}  // namespace strata::cli
