#pragma once

#include <string>
#include <string_view>

namespace strata::cli {

// The commit that the program was built from, with "+" if files had been changed; "unknown" without
// git.
std::string_view build_commit();
std::string_view build_version();

// Version, commit, instruction sets of the processor, backends; lines for a terminal.
std::string version_text();

}  // namespace strata::cli
