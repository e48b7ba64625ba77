#pragma once

namespace strata::os {

inline constexpr int kStdin = 0;
inline constexpr int kStdout = 1;
inline constexpr int kStderr = 2;

// A person may be at the other end of this descriptor.
bool is_terminal(int fd);

}  // namespace strata::os
