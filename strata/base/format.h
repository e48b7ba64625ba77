#pragma once

// g++ 12 has no std::format. Include this in sources, not in headers.
#include <fmt/format.h>

namespace strata {

using fmt::format;

}  // namespace strata
