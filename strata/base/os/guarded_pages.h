#pragma once

#include <cstddef>
#include <utility>

#include "strata/base/ids.h"

namespace strata::os {

// Pages of our own that can be closed: whoever touches closed ones crashes. For memory that poses
// as a card's, where a touch from the host is a mistake that nothing else would show.
class GuardedPages {
 public:
  // Open. Where the system has no such memory, data() is null.
  explicit GuardedPages(Bytes bytes);
  GuardedPages(GuardedPages&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  GuardedPages& operator=(GuardedPages&&) = delete;
  ~GuardedPages();

  std::byte* data() const { return data_; }  // at the start of a page
  // For all threads of this process.
  void set_open(bool open);

 private:
  std::byte* data_ = nullptr;
  Bytes bytes_ = 0;
};

}  // namespace strata::os
