#include "strata/base/carver.h"
#include "strata/kernels/gpu/few.h"
#include "strata/kernels/gpu/gpu.h"
#include "strata/kernels/gpu/lanes.cuh"
#include "strata/kernels/gpu/launch.h"
#include "strata/kernels/gpu/products.h"

namespace strata::kernels::gpu {
namespace {

constexpr int kThreads = 1024;
constexpr int64_t kMostExperts = 8192;  // a counter each in shared memory

// Sums of the threads before this one, and of all.
__device__ int before_me(int v, int* shared, int& total) {
  int sum = v;
  for (int width = 1; width < kLanes; width *= 2) {
    const int other = from_lane(sum, lane_id() - width < 0 ? 0 : lane_id() - width);
    if (lane_id() >= width) sum += other;
  }
  __syncthreads();
  if (lane_id() == kLanes - 1) shared[warp_id()] = sum;
  __syncthreads();
  int first = 0;
  total = 0;
  for (int w = 0; w < static_cast<int>(blockDim.x) / kLanes; ++w) {
    if (w < warp_id()) first += shared[w];
    total += shared[w];
  }
  return first + sum - v;
}

// Sorts the entries of a step by expert: one block of threads. Which of an expert's entries comes
// first is left to chance; each is computed alone.
__global__ void __launch_bounds__(kThreads)
    group_kernel(const int32_t* n_rows, const int32_t* id, int top_k, int n_experts, Groups out) {
  extern __shared__ int next[];  // [experts] entries, then where the next one goes
  __shared__ int of_warp[kThreads / kLanes];
  const int n = *n_rows * top_k;
  for (int e = threadIdx.x; e < n_experts; e += blockDim.x) next[e] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&next[id[i]], 1);
  __syncthreads();
  int n_active = 0, n_entries = 0;
  for (int base = 0; base < n_experts; base += blockDim.x) {
    const int e = base + threadIdx.x;
    const int count = e < n_experts ? next[e] : 0;
    int active = 0, entries = 0;
    const int place = n_active + before_me(count > 0 ? 1 : 0, of_warp, active);
    const int first = n_entries + before_me(count, of_warp, entries);
    if (count > 0) {
      out.expert[place] = e;
      out.first[place] = first;
      next[e] = first;
    }
    n_active += active;
    n_entries += entries;
  }
  if (threadIdx.x == 0) *out.n_active = n_active, out.first[n_active] = n_entries;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) out.entry[atomicAdd(&next[id[i]], 1)] = i;
}

// What a gated pair of products and the one behind it need.
struct Ffn {
  float *gate, *up;  // [rows, ff]
  Activations hidden;
};
Ffn carve_ffn(const int32_t* n_rows, int rows_each, int64_t max_rows, const Weight& gate,
              const Weight& down, Carver& carver) {
  Ffn f{};
  f.gate = carver.take<float>(max_rows * gate.rows);
  f.up = carver.take<float>(max_rows * gate.rows);
  f.hidden = {.n_rows = n_rows,
              .rows_each = rows_each,
              .x = f.gate,
              .y = f.up,
              .from = Activations::From::kSwiGlu,
              .max_rows = max_rows,
              .cols = gate.rows};
  f.hidden.want(down, carver);
  return f;
}

struct Parts {
  Groups groups;
  Activations x;
  Ffn routed, shared;
};
Parts carve(const ExpertFfn& a, Carver& carver) {
  const int64_t rows = a.id.extent(0), top_k = a.id.extent(1), experts = a.parts.extent(0);
  Parts p{};
  p.groups = {.n_active = carver.take<int32_t>(1),
              .expert = carver.take<int32_t>(experts),
              .first = carver.take<int32_t>(experts + 1),
              .entry = carver.take<int32_t>(rows * top_k)};
  // With rows named one by one, all of them take part.
  p.x = {.n_rows = a.x_row.rank() > 0 ? nullptr : a.n_rows,
         .x = a.x.data(),
         .max_rows = a.x.extent(0),
         .cols = static_cast<int>(a.x.extent(1))};
  p.x.want(a.shape.gate, carver);
  p.x.want(a.shape.up, carver);
  p.routed = carve_ffn(a.n_rows, static_cast<int>(top_k), rows * top_k, a.shape.gate, a.shape.down,
                       carver);
  if (a.shared.gate) {
    p.x.want(a.shared.gate, carver);
    p.x.want(a.shared.up, carver);
    p.shared = carve_ffn(a.n_rows, 1, rows, a.shared.gate, a.shared.down, carver);
  }
  return p;
}

struct SharedParts {
  Activations x;
  Ffn ffn;
};
SharedParts carve(const SharedFfn& a, Carver& carver) {
  SharedParts p{};
  p.x = {.n_rows = a.n_rows,
         .x = a.x.data(),
         .max_rows = a.x.extent(0),
         .cols = static_cast<int>(a.x.extent(1))};
  p.x.want(a.gate, carver);
  p.x.want(a.up, carver);
  p.ffn = carve_ffn(a.n_rows, 1, a.x.extent(0), a.gate, a.down, carver);
  return p;
}

// A few rows need no grouping: a block of threads finds the entries of its expert.
bool by_entries(const ExpertFfn& a) {
  const int64_t rows = a.id.extent(0);
  return a.x_row.rank() == 0 && a.id.size() <= kMostFewEntries && few_takes(a.shape.gate, rows) &&
         few_takes(a.shape.up, rows) && few_takes(a.shape.down, rows);
}

}  // namespace

bool expert_ffn_takes(const ExpertFfn& a) { return a.parts.extent(0) <= kMostExperts; }
Bytes expert_ffn_scratch(const device::Stream&, const ExpertFfn& a) {
  Carver carver(nullptr);
  carve(a, carver);
  return carver.peak();
}
void expert_ffn(const ExpertFfn& a, NativeStream s) {
  Carver carver(a.scratch.data());
  const Parts p = carve(a, carver);
  const int64_t rows = a.id.extent(0);
  const int top_k = static_cast<int>(a.id.extent(1)), experts = static_cast<int>(a.parts.extent(0));
  const bool few = by_entries(a);
  if (!few) {
    const size_t counts = static_cast<size_t>(experts) * sizeof(int);
    group_kernel<<<1, kThreads, counts, s>>>(a.n_rows, a.id.data(), top_k, experts, p.groups);
  }

  const ExpertShape& shape = a.shape;
  ProductArgs by_row{.x_row = a.x_row.data(),
                     .entries_a_row = top_k,
                     .groups = p.groups,
                     .parts = a.parts.data(),
                     .n_experts = experts,
                     .id = few ? a.id.data() : nullptr};
  ProductList in(p.x, rows, s);
  in.add(shape.gate, shape.gate_scale, 0, p.routed.gate, by_row);
  in.add(shape.up, shape.up_scale, 1, p.routed.up, by_row);
  if (a.shared.gate) {
    in.add(a.shared.gate, p.shared.gate);
    in.add(a.shared.up, p.shared.up);
  }
  in.run();

  ProductArgs by_entry = by_row;
  by_entry.entries_a_row = 1;
  by_entry.x_row = nullptr;
  ProductList out(p.routed.hidden, rows, s);
  out.add(shape.down, shape.down_scale, 2, a.out.data(), by_entry);
  out.run();
  if (!a.shared.gate) return;
  ProductList shared_out(p.shared.hidden, rows, s);
  shared_out.add(a.shared.down, a.shared.y.data());
  shared_out.run();
}

Bytes shared_ffn_scratch(const device::Stream&, const SharedFfn& a) {
  Carver carver(nullptr);
  carve(a, carver);
  return carver.peak();
}
void shared_ffn(const SharedFfn& a, NativeStream s) {
  Carver carver(a.scratch.data());
  const SharedParts p = carve(a, carver);
  const int64_t rows = a.x.extent(0);
  ProductList in(p.x, rows, s);
  in.add(a.gate, p.ffn.gate);
  in.add(a.up, p.ffn.up);
  in.run();
  ProductList out(p.ffn.hidden, rows, s);
  out.add(a.down, a.y.data());
  out.run();
}

}  // namespace strata::kernels::gpu
