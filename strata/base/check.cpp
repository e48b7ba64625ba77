#include "strata/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace strata {

void check_failed(const char* condition, SourceLocation where) {
  // stderr, not the log: the log may be what is broken.
  std::fprintf(stderr, "strata: check failed: %s at %s:%u (%s)\n", condition, where.file_name(),
               static_cast<unsigned>(where.line()), where.function_name());
  std::fflush(stderr);
  std::abort();
}

}  // namespace strata
