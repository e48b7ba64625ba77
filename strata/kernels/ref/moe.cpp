#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "strata/kernels/ref/ref.h"

namespace strata::kernels::ref {
namespace {
#include "strata/kernels/canonical_math.inl"

void swiglu_row(const Weight& gate, const Weight& up, const Weight& down, const float* x,
                float* y) {
  std::vector<float> g(static_cast<size_t>(gate.rows)), u(g.size());
  multiply_row(gate, x, g.data());
  multiply_row(up, x, u.data());
  for (size_t i = 0; i < g.size(); ++i) g[i] = silu_c(g[i]) * u[i];
  multiply_row(down, g.data(), y);
}

}  // namespace

void router_topk(const RouterTopk& a) {
  const int n = static_cast<int>(a.logits.extent(1));
  std::vector<float> p(static_cast<size_t>(n));
  std::vector<int32_t> order(p.size());
  for (int row = 0; row < *a.n_rows; ++row) {
    const float* x = a.logits.row(row);
    float best = x[0];
    for (int i = 1; i < n; ++i) best = x[i] > best ? x[i] : best;
    for (int i = 0; i < n; ++i) p[i] = exp_c(x[i] - best);
    const float sum = sum_c(p.data(), n);
    for (float& v : p) v = v / sum;
    // A broken logit sorts last, so that the ids stay in range whatever the weights hold.
    for (float& v : p) v = v == v ? v : -1.0f;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int i, int j) { return p[i] > p[j]; });
    float total = 0;
    for (int j = 0; j < a.top_k; ++j) total = total + p[order[j]];
    for (int j = 0; j < a.top_k; ++j) {
      a.id.row(row)[j] = order[j];
      a.weight.row(row)[j] = p[order[j]] / total;
    }
  }
}

void expert_ffn(const ExpertFfn& a) {
  const int64_t top_k = a.id.extent(1), width = a.out.extent(2);
  for (int row = 0; row < *a.n_rows; ++row) {
    for (int64_t j = 0; j < top_k; ++j) {
      const int e = a.id.row(row)[j];
      if (a.parts.row(e)[0] == nullptr) continue;
      Weight gate = a.shape.gate, up = a.shape.up, down = a.shape.down;
      gate.data = a.parts.row(e)[0], up.data = a.parts.row(e)[1], down.data = a.parts.row(e)[2];
      if (a.shape.gate_scale) gate.scale = a.shape.gate_scale + e;
      if (a.shape.up_scale) up.scale = a.shape.up_scale + e;
      if (a.shape.down_scale) down.scale = a.shape.down_scale + e;
      const int64_t from = a.x_row.rank() > 0 ? a.x_row[row] : row;
      swiglu_row(gate, up, down, a.x.row(from), a.out.row(row) + j * width);
    }
    if (a.shared.gate) {
      swiglu_row(a.shared.gate, a.shared.up, a.shared.down, a.x.row(row), a.shared.y.row(row));
    }
  }
}

void expert_combine(const ExpertCombine& a) {
  const int64_t top_k = a.id.extent(1), width = a.y.extent(1);
  std::vector<int> order(static_cast<size_t>(top_k));
  for (int row = 0; row < *a.n_rows; ++row) {
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](int i, int j) { return a.id.row(row)[i] < a.id.row(row)[j]; });
    const float gate = sigmoid_c(a.gate_logit.row(row)[0]);
    for (int64_t i = 0; i < width; ++i) {
      float sum = 0;
      for (int j : order) {
        sum = __builtin_fmaf(a.weight.row(row)[j], a.expert.row(row)[j * width + i], sum);
      }
      a.y.row(row)[i] = __builtin_fmaf(gate, a.shared.row(row)[i], sum);
    }
  }
}

void shared_ffn(const SharedFfn& a) {
  for (int row = 0; row < *a.n_rows; ++row) {
    swiglu_row(a.gate, a.up, a.down, a.x.row(row), a.y.row(row));
  }
}

}  // namespace strata::kernels::ref
