#include "strata/base/os/terminal.h"

#include <unistd.h>

namespace strata::os {

bool is_terminal(int fd) { return ::isatty(fd) == 1; }

}  // namespace strata::os
