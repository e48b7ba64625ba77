#pragma once

#include <source_location>

#ifdef __cpp_lib_source_location

namespace strata {
using SourceLocation = std::source_location;
}  // namespace strata

#else

#include <cstdint>

namespace strata {

// What the standard class gives, for clang 14 (presets fuzz and tidy): it lacks the builtin that
// libstdc++ 12 asks for.
class SourceLocation {
 public:
  static constexpr SourceLocation current(const char* file = __builtin_FILE(),
                                          const char* function = __builtin_FUNCTION(),
                                          uint32_t line = __builtin_LINE()) {
    SourceLocation here;
    here.file_ = file;
    here.function_ = function;
    here.line_ = line;
    return here;
  }
  constexpr const char* file_name() const { return file_; }
  constexpr const char* function_name() const { return function_; }
  constexpr uint32_t line() const { return line_; }
  constexpr uint32_t column() const { return 0; }

 private:
  const char* file_ = "";
  const char* function_ = "";
  uint32_t line_ = 0;
};

}  // namespace strata

#endif
