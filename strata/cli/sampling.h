#pragma once

#include "strata/cli/settings.h"
#include "strata/wire/messages.h"

namespace strata::cli {

wire::Sampling sampling_of(const Settings& settings);

}  // namespace strata::cli
