#include "strata/base/carver.h"
#include "strata/kernels/gpu/gpu.h"
#include "strata/kernels/gpu/products.h"

namespace strata::kernels::gpu {
namespace {

Activations inputs_of(const MatMul& a, Carver& carver) {
  Activations x{.n_rows = a.n_rows,
                .x = a.x.data(),
                .max_rows = a.x.extent(0),
                .cols = static_cast<int>(a.x.extent(1))};
  for (int i = 0; i < a.n_out; ++i) x.want(a.out[static_cast<size_t>(i)].w, carver);
  return x;
}

}  // namespace

Bytes matmul_scratch(const device::Stream&, const MatMul& a) {
  Carver carver(nullptr);
  inputs_of(a, carver);
  return carver.peak();
}
void matmul(const MatMul& a, NativeStream s) {
  Carver carver(a.scratch.data());
  const Activations x = inputs_of(a, carver);
  ProductList list(x, x.max_rows, s);
  for (int i = 0; i < a.n_out; ++i) {
    list.add(a.out[static_cast<size_t>(i)].w, a.out[static_cast<size_t>(i)].y.data());
  }
  list.run();
}

}  // namespace strata::kernels::gpu
