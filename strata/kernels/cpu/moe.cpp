#include <algorithm>

#include "strata/kernels/cpu/cpu.h"

namespace strata::kernels::cpu {
namespace {

constexpr int kPiece = 64;  // weight rows given out together
constexpr int kMaxTopK = 64;

int64_t pieces(int rows) { return (rows + kPiece - 1) / kPiece; }

// The (row, choice) pairs of a step whose experts are here, sorted by expert, so that each expert's
// weights are read once.
struct Groups {
  int32_t* first;   // [experts + 1] of the expert in pair order
  int32_t* expert;  // [experts] the distinct ones, ascending
  int32_t* row;     // [pairs] activation row
  int32_t* out;     // [pairs] row * top_k + choice
  int n_distinct = 0, n_pairs = 0;
};

// gate and up of some rows, silu(gate) * up in place of gate, and that quantised.
struct HiddenRows {
  float *gate, *up;  // [rows, ff]
  Activations h;
};

HiddenRows carve_hidden(int rows, int ff, const Weight& down, Carver& carver) {
  float* gate = carver.take<float>(int64_t{rows} * ff);
  float* up = carver.take<float>(int64_t{rows} * ff);
  HiddenRows hidden{gate, up, Activations(gate, ff, rows, ff)};
  hidden.h.want(down, carver);
  return hidden;
}

// Columns [first, last) of silu(gate x) * (up x) for the rows of index, or all of x.
void gate_and_up(const Activations& x, const Weight& gate, const Weight& up, int first, int last,
                 std::span<const int32_t> index, float* g, float* u) {
  const int64_t ff = gate.rows;
  x.multiply(gate, first, last, index, {.y = g, .stride = ff});
  x.multiply(up, first, last, index, {.y = u, .stride = ff});
  const int64_t n = index.empty() ? x.n_rows() : static_cast<int64_t>(index.size());
  for (int64_t i = 0; i < n; ++i) {
    row_fns().swiglu(g + i * ff + first, u + i * ff + first, last - first);
  }
}

struct FfnScratch {
  Groups groups;
  HiddenRows routed, shared;
  Activations x;
};

FfnScratch carve(const ExpertFfn& a, int n_rows, Carver& carver) {
  const int64_t experts = a.parts.extent(0);
  const int pairs = n_rows * static_cast<int>(a.id.extent(1));
  const int width = a.shape.gate.cols;
  const Groups groups{carver.take<int32_t>(experts + 1), carver.take<int32_t>(experts),
                      carver.take<int32_t>(pairs), carver.take<int32_t>(pairs)};
  const HiddenRows routed = carve_hidden(pairs, a.shape.gate.rows, a.shape.down, carver);
  const HiddenRows shared =
      carve_hidden(a.shared.gate ? n_rows : 0, a.shared.gate.rows, a.shared.down, carver);
  const int n_x = a.x_row.rank() > 0 ? static_cast<int>(a.x.extent(0)) : n_rows;
  FfnScratch s{groups, routed, shared, Activations(a.x.data(), width, n_x, width)};
  s.x.want(a.shape.gate, carver);
  s.x.want(a.shape.up, carver);
  if (a.shared.gate) {
    s.x.want(a.shared.gate, carver);
    s.x.want(a.shared.up, carver);
  }
  return s;
}

void group_by_expert(const ExpertFfn& a, int n_rows, Groups& g) {
  const int64_t experts = a.parts.extent(0), top_k = a.id.extent(1), pairs = n_rows * top_k;
  std::fill_n(g.first, experts + 1, 0);
  const auto here = [&](int64_t p) { return a.parts.row(a.id[p])[0] != nullptr; };
  for (int64_t p = 0; p < pairs; ++p) {
    if (here(p)) ++g.first[a.id[p] + 1];
  }
  for (int64_t e = 0; e < experts; ++e) {
    if (g.first[e + 1] > 0) g.expert[g.n_distinct++] = static_cast<int32_t>(e);
    g.first[e + 1] += g.first[e];
  }
  // Filling moves first[e] to the end of e, which is the start of e + 1: shift back afterwards.
  g.n_pairs = g.first[experts];
  for (int64_t p = 0; p < pairs; ++p) {
    if (!here(p)) continue;
    const int32_t at = g.first[a.id[p]]++;
    const auto row = static_cast<int32_t>(p / top_k);
    g.row[at] = a.x_row.rank() > 0 ? a.x_row[row] : row;
    g.out[at] = static_cast<int32_t>(p);
  }
  for (int64_t e = experts; e > 0; --e) g.first[e] = g.first[e - 1];
  g.first[0] = 0;
}

// Matrix `part` (0 gate, 1 up, 2 down) of expert e.
Weight matrix(const ExpertFfn& a, int e, int part) {
  Weight w = part == 0 ? a.shape.gate : part == 1 ? a.shape.up : a.shape.down;
  const float* scale = part == 0   ? a.shape.gate_scale
                       : part == 1 ? a.shape.up_scale
                                   : a.shape.down_scale;
  w.data = a.parts.row(e)[part];
  w.scale = scale ? scale + e : nullptr;
  return w;
}

}  // namespace

bool router_topk_takes(const RouterTopk& a) { return a.top_k <= kMaxTopK; }
bool expert_combine_takes(const ExpertCombine& a) { return a.id.extent(1) <= kMaxTopK; }

void router_topk(const RouterTopk& a, ThreadPool& pool) {
  const int n = static_cast<int>(a.logits.extent(1));
  pool.parallel_for(Loop{.n_items = *a.n_rows, .ns_per_item = n * (0.5 + a.top_k * 0.05)},
                    [&](int64_t begin, int64_t end) {
                      for (int64_t row = begin; row < end; ++row) {
                        // In place: the logits are not needed again.
                        float* p = a.logits.row(row);
                        row_fns().softmax(p, n, p);
                        float kept[kMaxTopK];
                        row_fns().top_k(p, n, a.top_k, a.id.row(row), kept);
                        float total = 0;
                        for (int j = 0; j < a.top_k; ++j) total = total + kept[j];
                        for (int j = 0; j < a.top_k; ++j) a.weight.row(row)[j] = kept[j] / total;
                      }
                    });
}

Bytes expert_ffn_scratch(const device::Stream&, const ExpertFfn& a) {
  Carver carver(nullptr);
  carve(a, static_cast<int>(a.id.extent(0)), carver);
  return carver.peak();
}

void expert_ffn(const ExpertFfn& a, ThreadPool& pool) {
  const int n_rows = *a.n_rows, ff = a.shape.gate.rows, width = a.shape.down.rows;
  Carver carver(a.scratch.data());
  FfnScratch s = carve(a, n_rows, carver);
  Groups& g = s.groups;
  group_by_expert(a, n_rows, g);
  s.x.quantise(pool);

  const int rows_each = std::max(1, g.n_pairs / std::max(1, g.n_distinct));
  // An item is a piece of one expert, the shared one first; its rows of gate and up make the same
  // part of h. One loop for all of them: no barrier an expert. Experts ascend, so that by place
  // each memory node has its own ones.
  const int64_t ff_pieces = pieces(ff), shared_pieces = n_rows > 0 ? pieces(a.shared.gate.rows) : 0;
  pool.parallel_for(Loop{.n_items = shared_pieces + g.n_distinct * ff_pieces,
                         .ns_per_item = 2 * matmul_ns(a.shape.gate, kPiece, rows_each),
                         .share = pool.by_place()},
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        if (i < shared_pieces) {
                          const int first = static_cast<int>(i) * kPiece;
                          gate_and_up(s.x, a.shared.gate, a.shared.up, first,
                                      std::min(first + kPiece, a.shared.gate.rows), {},
                                      s.shared.gate, s.shared.up);
                          continue;
                        }
                        const int64_t at = i - shared_pieces;
                        const int e = g.expert[at / ff_pieces];
                        const int first = static_cast<int>(at % ff_pieces) * kPiece;
                        const int64_t row = int64_t{g.first[e]} * ff;
                        gate_and_up(s.x, matrix(a, e, 0), matrix(a, e, 1), first,
                                    std::min(first + kPiece, ff),
                                    {g.row + g.first[e], g.row + g.first[e + 1]},
                                    s.routed.gate + row, s.routed.up + row);
                      }
                    });

  s.routed.h.quantise(pool);
  if (a.shared.gate) s.shared.h.quantise(pool);
  const int64_t out_pieces = pieces(width), shared_out = shared_pieces > 0 ? out_pieces : 0;
  pool.parallel_for(Loop{.n_items = shared_out + g.n_distinct * out_pieces,
                         .ns_per_item = matmul_ns(a.shape.down, kPiece, rows_each),
                         .share = pool.by_place()},
                    [&](int64_t begin, int64_t end) {
                      int32_t index[256];
                      for (int64_t i = begin; i < end; ++i) {
                        const int first = static_cast<int>(i % out_pieces) * kPiece;
                        const int last = std::min(first + kPiece, width);
                        if (i < shared_out) {
                          s.shared.h.multiply(a.shared.down, first, last, {},
                                              {.y = a.shared.y.data(), .stride = width});
                          continue;
                        }
                        const int e = g.expert[(i - shared_out) / out_pieces];
                        for (int p = g.first[e]; p < g.first[e + 1]; p += 256) {
                          const int n = std::min(256, g.first[e + 1] - p);
                          for (int j = 0; j < n; ++j) index[j] = p + j;
                          s.routed.h.multiply(
                              matrix(a, e, 2), first, last,
                              std::span<const int32_t>(index, static_cast<size_t>(n)),
                              {.y = a.out.data(), .stride = width, .row = g.out + p});
                        }
                      }
                    });
}

void expert_combine(const ExpertCombine& a, ThreadPool& pool) {
  const int top_k = static_cast<int>(a.id.extent(1)), width = static_cast<int>(a.y.extent(1));
  pool.parallel_for(Loop{.n_items = *a.n_rows, .ns_per_item = width * top_k * 0.08},
                    [&](int64_t begin, int64_t end) {
                      for (int64_t row = begin; row < end; ++row) {
                        const int32_t* id = a.id.row(row);
                        int order[kMaxTopK];
                        for (int j = 0; j < top_k; ++j) {
                          int k = j;
                          for (; k > 0 && id[order[k - 1]] > id[j]; --k) order[k] = order[k - 1];
                          order[k] = j;
                        }
                        const float* expert[kMaxTopK];
                        float weight[kMaxTopK];
                        for (int j = 0; j < top_k; ++j) {
                          expert[j] = a.expert.row(row) + static_cast<int64_t>(order[j]) * width;
                          weight[j] = a.weight.row(row)[order[j]];
                        }
                        row_fns().combine(expert, weight, top_k, a.gate_logit.row(row)[0],
                                          a.shared.row(row), width, a.y.row(row));
                      }
                    });
}

namespace {

struct SharedScratch {
  HiddenRows hidden;
  Activations x;
};

SharedScratch carve(const SharedFfn& a, int n_rows, Carver& carver) {
  const int width = a.gate.cols;
  const HiddenRows hidden = carve_hidden(n_rows, a.gate.rows, a.down, carver);
  SharedScratch s{hidden, Activations(a.x.data(), width, n_rows, width)};
  s.x.want(a.gate, carver);
  s.x.want(a.up, carver);
  return s;
}

}  // namespace

Bytes shared_ffn_scratch(const device::Stream&, const SharedFfn& a) {
  Carver carver(nullptr);
  carve(a, static_cast<int>(a.x.extent(0)), carver);
  return carver.peak();
}

void shared_ffn(const SharedFfn& a, ThreadPool& pool) {
  const int n_rows = *a.n_rows, ff = a.gate.rows, width = a.down.rows;
  Carver carver(a.scratch.data());
  const SharedScratch s = carve(a, n_rows, carver);
  s.x.quantise(pool);
  pool.parallel_for(
      Loop{.n_items = pieces(ff), .ns_per_item = 2 * matmul_ns(a.gate, kPiece, n_rows)},
      [&](int64_t begin, int64_t end) {
        gate_and_up(s.x, a.gate, a.up, static_cast<int>(begin) * kPiece,
                    std::min(static_cast<int>(end) * kPiece, ff), {}, s.hidden.gate, s.hidden.up);
      });
  s.hidden.h.quantise(pool);
  pool.parallel_for(
      Loop{.n_items = pieces(width), .ns_per_item = matmul_ns(a.down, kPiece, n_rows)},
      [&](int64_t begin, int64_t end) {
        s.hidden.h.multiply(a.down, static_cast<int>(begin) * kPiece,
                            std::min(static_cast<int>(end) * kPiece, width), {},
                            {.y = a.y.data(), .stride = width});
      });
}

}  // namespace strata::kernels::cpu
