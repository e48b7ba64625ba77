#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "strata/base/check.h"

namespace strata {

// A pointer with a shape, outermost dimension first, row-major and dense. Never owns. Trivially
// copyable and small, so that it may travel in a launch; an extent fits 31 bits, a size 63.
template <class T>
class View {
 public:
  static constexpr int kMaxRank = 4;

  constexpr View() = default;
  constexpr View(T* data, std::initializer_list<int64_t> shape)
      : data_(data), rank_(static_cast<int>(shape.size())) {
    int i = 0;
    for (int64_t extent : shape) {
      STRATA_CHECK(extent >= 0 && extent <= INT32_MAX);
      shape_[i++] = static_cast<int32_t>(extent);
    }
  }
  // A view of T converts to a view of const T.
  template <class U>
  requires(std::is_convertible_v<U (*)[], T (*)[]> && !std::is_same_v<U, T>)
      // NOLINTNEXTLINE(google-explicit-constructor): that is what a conversion is
      constexpr View(const View<U>& other)
      : data_(other.data()), rank_(other.rank()) {
    for (int i = 0; i < rank_; ++i) shape_[i] = static_cast<int32_t>(other.extent(i));
  }

  constexpr T* data() const { return data_; }
  constexpr int rank() const { return rank_; }
  constexpr int64_t extent(int i) const { return shape_[i]; }
  constexpr int64_t size() const {
    if (rank_ == 0) return 0;
    int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= shape_[i];
    return n;
  }
  constexpr bool empty() const { return data_ == nullptr || size() == 0; }
  constexpr explicit operator bool() const { return data_ != nullptr; }

  // The same shape at another address.
  constexpr View at(T* data) const {
    View view = *this;
    view.data_ = data;
    return view;
  }
  constexpr T& operator[](int64_t i) const { return data_[i]; }
  // The i-th slice of the outermost dimension.
  constexpr T* row(int64_t i) const {
    int64_t stride = 1;
    for (int d = 1; d < rank_; ++d) stride *= shape_[d];
    return data_ + i * stride;
  }

 private:
  T* data_ = nullptr;
  std::array<int32_t, kMaxRank> shape_{};
  int rank_ = 0;
};

}  // namespace strata
