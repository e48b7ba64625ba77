#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "strata/base/carver.h"
#include "strata/kernels/ref/ref.h"
#include "strata/kernels/ref/sample_row.h"

namespace strata::kernels::ref {
namespace {
#include "strata/kernels/canonical_math.inl"

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
// Below this the noise cannot move a choice, and 1 / temperature comes near the end of the range.
constexpr float kCold = 1e-6f;
// The largest value that gumbel_c gives: -log(-log(1 - 2^-24)).
constexpr float kMaxGumbel = 16.64f;

// Falling logit, of equals the lower id first: the order of every filter.
struct Better {
  const float* x;
  bool operator()(int32_t a, int32_t b) const { return x[a] != x[b] ? x[a] > x[b] : a < b; }
};

void apply_penalties(const SampleRows& a, const SampleParams& p, float* x) {
  for (int32_t i = p.first_bias; i < p.first_bias + p.n_bias; ++i) {
    x[a.biases[i].id] = x[a.biases[i].id] + a.biases[i].bias;
  }
  for (int32_t i = p.first_count; i < p.first_count + p.n_counts; ++i) {
    const TokenCount count = a.counts[i];
    float& v = x[count.id];
    if (count.repeated != 0) v = v > 0 ? v / p.repetition : v * p.repetition;
    if (count.n > 0) v = v - p.presence - p.frequency * static_cast<float>(count.n);
  }
}

void apply_mask(const SampleRows& a, const SampleParams& p, int32_t n, float* x) {
  if (p.mask < 0) return;
  const uint64_t* words = a.masks.row(p.mask);
  for (int32_t first = 0; first < n; first += 64) {
    const uint64_t word = words[first / 64];
    if (word == ~uint64_t{0}) continue;
    for (int32_t i = first; i < std::min(n, first + 64); ++i) {
      if ((word >> (i - first) & 1) == 0) x[i] = kMinusInfinity;
    }
  }
}

// Of the logits as they came, `raw`, which hold no infinity.
void write_logprobs(int32_t n_top, const float* raw, int32_t n, int32_t chosen, int32_t* order,
                    float* weight, RowLogprobs& out) {
  int32_t n_order = 0;
  for (int32_t i = 0; i < n; ++i) {
    if (raw[i] == raw[i]) order[n_order++] = i;
  }
  out.n_top = std::min({n_top, n_order, int32_t{RowLogprobs::kMaxTop}});
  // One more, since the best is needed in any case.
  std::partial_sort(order, order + std::min(n_order, out.n_top + 1), order + n_order, Better{raw});
  const float best = raw[order[0]];
  for (int32_t i = 0; i < n; ++i) weight[i] = raw[i] == raw[i] ? exp_c(raw[i] - best) : 0;
  const float log_total = log_c(sum_c(weight, n));
  const auto logprob = [&](int32_t id) { return std::min(raw[id] - best - log_total, 0.0f); };
  for (int32_t i = 0; i < out.n_top; ++i) {
    out.id[i] = order[i];
    out.logprob[i] = logprob(order[i]);
  }
  out.chosen = logprob(chosen);
}

// Keeps the first candidates in Better's order whose probabilities reach top_p, and of those the
// ones with at least min_p times the best probability. `order` holds all candidates; it is sorted
// only as far as needed. weight has room for one number each. Returns how many stay.
size_t filter_by_probability(const SampleParams& p, const float* x, float best,
                             std::span<int32_t> order, float* weight) {
  for (size_t i = 0; i < order.size(); ++i) weight[i] = exp_c(x[order[i]] - best);
  const float total = sum_c(weight, static_cast<int64_t>(order.size()));
  size_t sorted = 0, kept = 0;
  float cumulative = 0;
  while (kept < order.size()) {
    if (kept == sorted) {
      const size_t next = std::min(order.size(), std::max<size_t>(64, sorted * 4));
      std::partial_sort(order.begin() + static_cast<std::ptrdiff_t>(sorted),
                        order.begin() + static_cast<std::ptrdiff_t>(next), order.end(), Better{x});
      sorted = next;
    }
    const float share = exp_c(x[order[kept]] - best);
    if (kept > 0 && (cumulative >= p.top_p * total || share < p.min_p)) break;
    cumulative = cumulative + share;
    ++kept;
  }
  return kept;
}

int32_t argmax(const float* x, int32_t n) {
  int32_t best = -1;
  float value = kMinusInfinity;
  for (int32_t i = 0; i < n; ++i) {
    if (x[i] > value) value = x[i], best = i;
  }
  return best;
}

struct Scratch {
  int32_t* order;  // [vocab] candidates
  float* weight;   // [vocab] of each
  float* raw;      // [vocab] logits as they came, for rows with logprobs
};

Scratch carve(const SampleRows& a, Carver& carver) {
  const int64_t vocab = a.logits.extent(1);
  return {carver.take<int32_t>(vocab), carver.take<float>(vocab),
          carver.take<float>(a.logprobs.rank() > 0 ? vocab : 0)};
}

int32_t choose(const SampleRows& a, const SampleParams& p, float* x, int32_t n, const Scratch& s) {
  apply_penalties(a, p, x);
  apply_mask(a, p, n, x);
  const int32_t top = argmax(x, n);
  if (top < 0 || !(x[top] < std::numeric_limits<float>::infinity())) return -1;
  // Also where it is no number: the answer is never lost to it.
  if (!(p.temperature > kCold)) return top;

  const float inverse = 1.0f / p.temperature;
  for (int32_t i = 0; i < n; ++i) x[i] = x[i] == x[i] ? x[i] * inverse : kMinusInfinity;
  const float best = x[top];

  size_t n_order = 0;
  const bool by_probability = p.top_p < 1 || p.min_p > 0;
  if (p.top_k > 0 || by_probability) {
    for (int32_t i = 0; i < n; ++i) {
      if (x[i] > kMinusInfinity) s.order[n_order++] = i;
    }
    if (p.top_k > 0 && static_cast<size_t>(p.top_k) < n_order) {
      std::nth_element(s.order, s.order + p.top_k, s.order + n_order, Better{x});
      n_order = static_cast<size_t>(p.top_k);
      std::sort(s.order, s.order + n_order);
    }
    if (by_probability) {
      n_order = filter_by_probability(p, x, best, {s.order, n_order}, s.weight);
    }
  }

  int32_t chosen = -1;
  float value = kMinusInfinity;
  const auto consider = [&](int32_t id) {
    // Even the luckiest draw cannot win from here: spares most of a vocabulary the noise.
    if (x[id] + kMaxGumbel < value) return;
    const float noisy =
        x[id] + gumbel_c(p.seed, static_cast<uint64_t>(p.position), static_cast<uint32_t>(id));
    if (noisy > value || (noisy == value && id < chosen)) value = noisy, chosen = id;
  };
  consider(top);
  if (p.top_k > 0 || by_probability) {
    for (size_t i = 0; i < n_order; ++i) consider(s.order[i]);
  } else {
    for (int32_t id = 0; id < n; ++id) consider(id);
  }
  return chosen;
}

}  // namespace

Bytes sample_row_scratch(const SampleRows& a) {
  Carver carver(nullptr);
  carve(a, carver);
  return carver.peak();
}

int32_t sample_row(const SampleRows& a, int row, std::byte* scratch) {
  const SampleParams& p = a.params[row];
  const int32_t n = static_cast<int32_t>(a.logits.extent(1));
  float* x = a.logits.row(row);
  Carver carver(scratch);
  const Scratch s = carve(a, carver);
  if (p.n_top >= 0) std::copy_n(x, n, s.raw);
  const int32_t chosen = choose(a, p, x, n, s);
  if (p.n_top >= 0 && chosen >= 0) {
    write_logprobs(p.n_top, s.raw, n, chosen, s.order, s.weight, a.logprobs[row]);
  }
  return chosen;
}

Bytes sample_rows_scratch(const device::Stream&, const SampleRows& a) {
  return sample_row_scratch(a);
}

void sample_rows(const SampleRows& a) {
  for (int row = 0; row < *a.n_rows; ++row) a.chosen[row] = sample_row(a, row, a.scratch.data());
}

}  // namespace strata::kernels::ref
