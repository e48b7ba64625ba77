#include "strata/base/os/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace strata::os {

void Descriptor::reset() {
  // Not retried on EINTR: Linux has closed it by then, and the number may be another file's.
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Descriptor open_descriptor(const char* path, int flags, unsigned mode) {
  int fd = -1;
  do {
    fd = ::open(path, flags, static_cast<mode_t>(mode));
  } while (fd < 0 && errno == EINTR);
  return Descriptor(fd);
}

std::string describe(int error) { return std::generic_category().message(error); }

}  // namespace strata::os
