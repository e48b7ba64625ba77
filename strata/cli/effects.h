#pragma once

#include <string>
#include <vector>

#include "strata/cli/arguments.h"

namespace strata::cli {

// Options of this command that were given and change nothing, because of other options; one
// sentence each. What depends on the model is said by the command.
std::vector<std::string> without_effect(const Invocation& invocation);

}  // namespace strata::cli
