#pragma once

#include "strata/base/source_location.h"

namespace strata {

[[noreturn]] void check_failed(const char* condition, SourceLocation where);

}  // namespace strata

// Always on; aborts with file and line. Only for our own mistakes: bytes from a file, a request or
// a device are judged by Error.
#define STRATA_CHECK(condition) \
  (static_cast<bool>(condition) \
       ? static_cast<void>(0)   \
       : ::strata::check_failed(#condition, ::strata::SourceLocation::current()))
