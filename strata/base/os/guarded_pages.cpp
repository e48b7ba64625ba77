#include "strata/base/os/guarded_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <limits>

#include "strata/base/check.h"

namespace strata::os {

GuardedPages::GuardedPages(Bytes bytes) : bytes_(std::max<Bytes>(bytes, 1)) {
  constexpr Bytes kMost = std::numeric_limits<ptrdiff_t>::max();
  if (bytes_ > kMost) return;
  void* const data = ::mmap(nullptr, static_cast<size_t>(bytes_), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data != MAP_FAILED) data_ = static_cast<std::byte*>(data);
}

GuardedPages::~GuardedPages() {
  if (data_ != nullptr) ::munmap(data_, static_cast<size_t>(bytes_));
}

void GuardedPages::set_open(bool open) {
  STRATA_CHECK(data_ != nullptr);
  // Of whole pages of our own only the lack of memory for the system's tables can make it fail.
  STRATA_CHECK(::mprotect(data_, static_cast<size_t>(bytes_),
                          open ? PROT_READ | PROT_WRITE : PROT_NONE) == 0);
}

}  // namespace strata::os
