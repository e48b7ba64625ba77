#pragma once

#include <cstdint>
#include <initializer_list>

#include "strata/base/view.h"
#include "strata/kernels/ops/rows.h"

namespace strata::kernels {

// What the contract of one op demands of its arguments: sizes, alignment, and what may not overlap.
// Pointers that are null are not looked at, so that shapes can be checked while memory is laid out.
// What is checked comes from our own code; files and requests were checked when they were read.
// Errors of all: kInternal naming op, demand and what there is instead.
class Contract {
 public:
  explicit Contract(const char* op) : op_(op) {}

  void that(bool holds, const char* demand) const {
    if (!holds) fail(demand);
  }
  // n rows of `width` elements, however the row is shaped further.
  template <class T>
  void rows(const View<T>& view, int64_t n, int64_t width, const char* demand) const {
    const bool fits = view.rank() > 0 && view.extent(0) == n && view.size() == n * width;
    if (!fits || !aligned(view.data(), alignof(T))) fail(demand, view.data(), shape_of(view));
  }
  template <class T>
  void shape(const View<T>& view, std::initializer_list<int64_t> wanted, const char* demand) const {
    bool fits = view.rank() == static_cast<int>(wanted.size()) && aligned(view.data(), alignof(T));
    int i = 0;
    for (const int64_t extent : wanted) fits = fits && view.extent(i++) == extent;
    if (!fits) fail(demand, view.data(), shape_of(view));
  }
  // [rows, cols] in whole blocks of its type; in tiles as quant/tiles.h lays them.
  void matrix(const Weight& w, int64_t rows, int64_t cols, const char* demand) const;
  template <class A, class B>
  void apart(const View<A>& a, const View<B>& b, const char* demand) const {
    if (overlap(a.data(), a.size() * int64_t{sizeof(A)}, b.data(), b.size() * int64_t{sizeof(B)})) {
      fail(demand);
    }
  }

 private:
  struct Shape {
    int rank = 0;
    int64_t extent[View<float>::kMaxRank] = {};
  };
  template <class T>
  static Shape shape_of(const View<T>& view) {
    Shape shape{.rank = view.rank()};
    for (int i = 0; i < view.rank(); ++i) shape.extent[i] = view.extent(i);
    return shape;
  }
  static bool aligned(const void* at, uintptr_t to) {
    return reinterpret_cast<uintptr_t>(at) % to == 0;
  }
  static bool overlap(const void* a, int64_t a_bytes, const void* b, int64_t b_bytes);
  [[noreturn]] void fail(const char* demand) const;
  [[noreturn]] void fail(const char* demand, const void* at, const Shape& shape) const;

  const char* op_;
};

// Elements of a row.
template <class T>
int64_t row_size(const View<T>& view) {
  return view.rank() > 0 && view.extent(0) > 0 ? view.size() / view.extent(0) : 0;
}

}  // namespace strata::kernels
