#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "strata/base/ids.h"
#include "strata/base/view.h"

namespace strata {

// Cuts one stretch of memory into arrays, each at a multiple of 256 bytes. Without a base it only
// counts, so that the code which lays memory out is also the code which sizes it.
class Carver {
 public:
  static constexpr Bytes kAlign = 256;

  explicit Carver(std::byte* base) : base_(base) {}

  template <class T>
  T* take(int64_t n) {
    std::byte* at = base_ ? base_ + used_ : nullptr;
    used_ += (static_cast<Bytes>(n) * sizeof(T) + kAlign - 1) / kAlign * kAlign;
    peak_ = std::max(peak_, used_);
    return reinterpret_cast<T*>(at);
  }
  template <class T>
  View<T> view(std::initializer_list<int64_t> shape) {
    int64_t n = 1;
    for (int64_t extent : shape) n *= extent;
    return View<T>(take<T>(n), shape);
  }

  // Arrays taken after a mark may be given up together: what follows overlays them.
  Bytes mark() const { return used_; }
  void rewind(Bytes mark) { used_ = mark; }

  Bytes peak() const { return peak_; }

 private:
  std::byte* base_;
  Bytes used_ = 0, peak_ = 0;
};

}  // namespace strata
