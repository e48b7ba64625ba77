#include "strata/kernels/ops/gdn.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "strata/base/format.h"
#include "strata/kernels/test_machines.h"

namespace strata::kernels {
namespace {

using testing::Machine;
using testing::Outputs;
using testing::Seq;

struct Heads {
  int key_heads, value_heads, dk, dv;
  int channels() const { return 2 * key_heads * dk + value_heads * dv; }
};

// The state of a layer, copied for each machine.
struct DeltaMemory {
  DeltaMemory(testing::Rng& rng, const Heads& h, int n_slots, int n_window)
      : heads(h),
        slots(n_slots),
        window(n_window),
        s(testing::normal(rng, int64_t{slots} * 2 * h.value_heads * h.dk * h.dv, 0.3f)),
        log_g(static_cast<size_t>(slots * window * h.value_heads), -7.5f),
        log_k(static_cast<size_t>(slots * window * h.key_heads * h.dk), -7.5f),
        log_d(static_cast<size_t>(slots * window * h.value_heads * h.dv), -7.5f) {}
  DeltaState state() {
    const Heads& h = heads;
    return {.s = View<float>(s.data(), {slots, 2, h.value_heads * h.dk, h.dv}),
            .log_g = View<float>(log_g.data(), {slots, window, h.value_heads}),
            .log_k = View<float>(log_k.data(), {slots, window, h.key_heads * h.dk}),
            .log_d = View<float>(log_d.data(), {slots, window, h.value_heads * h.dv})};
  }
  std::vector<float> side(int slot, int which) {
    const float* at = state().side(slot, which);
    return {at, at + heads.value_heads * heads.dk * heads.dv};
  }
  Heads heads;
  int slots, window;
  std::vector<float> s, log_g, log_k, log_d;
};

// Inputs of a step.
struct Inputs {
  Inputs(testing::Rng& rng, const Heads& h, int rows)
      : n(rows),
        qkv(testing::normal(rng, int64_t{rows} * h.channels())),
        beta(testing::normal(rng, rows * h.value_heads)),
        alpha(testing::normal(rng, rows * h.value_heads)),
        dt(testing::normal(rng, h.value_heads)) {
    for (int i = 0; i < h.value_heads; ++i) a.push_back(-0.1f - 0.3f * static_cast<float>(i % 5));
  }
  // The op on rows [first, first + rows).
  Gdn args(const Heads& h, const Rows& rows, DeltaState state, View<float> o, int first = 0) const {
    const int64_t here = n - first;
    return {.rows = rows,
            .qkv = View<const float>(qkv.data() + first * h.channels(), {here, h.channels()}),
            .beta = View<const float>(beta.data() + first * h.value_heads, {here, h.value_heads}),
            .alpha = View<const float>(alpha.data() + first * h.value_heads, {here, h.value_heads}),
            .a = a.data(),
            .dt = dt.data(),
            .key_heads = h.key_heads,
            .value_heads = h.value_heads,
            .dk = h.dk,
            .dv = h.dv,
            .eps = 1e-6f,
            .state = state,
            .o = o};
  }
  int n;
  std::vector<float> qkv, beta, alpha, dt, a;
};

void expect_gdn_parity(const Heads& h, const std::vector<Seq>& sequences, uint32_t seed,
                       bool broken = false) {
  testing::Rng rng(seed);
  const testing::TestRows rows(rng, sequences, {.slots = 3});
  Inputs in(rng, h, rows.max_rows());
  if (broken) {
    testing::salt(rng, in.qkv, 60, true);
    testing::salt(rng, in.alpha, 10, true);
    testing::salt(rng, in.beta, 10, true);
  }
  const DeltaMemory memory(rng, h, 3, 6);
  testing::expect_same(
      format("{}/{} heads of {} x {}, {} sequences", h.key_heads, h.value_heads, h.dk, h.dv,
             sequences.size()),
      [&](Machine& m) {
        DeltaMemory own = memory;
        std::vector<float> o(static_cast<size_t>(in.n * h.value_heads * h.dv), -7.5f);
        m.run(m.ops().gdn, in.args(h, rows.rows(), own.state(),
                                   View<float>(o.data(), {in.n, h.value_heads * h.dv})));
        EXPECT_EQ(o.back(), -7.5f);
        Outputs out;
        out.add("o", o);
        out.add("s", own.s);
        out.add("log_g", own.log_g);
        out.add("log_k", own.log_k);
        out.add("log_d", own.log_d);
        return out;
      });
}

TEST(GdnOp, Parity) {
  uint32_t seed = 1;
  for (const Heads& h :
       {Heads{1, 1, 1, 1}, Heads{2, 6, 16, 16}, Heads{1, 2, 7, 33}, Heads{2, 2, 33, 8},
        Heads{4, 4, 16, 31}, Heads{1, 3, 128, 128}, Heads{3, 3, 5, 47}, Heads{1, 1, 256, 40}}) {
    for (int n : {1, 2, 3, 7}) expect_gdn_parity(h, {{1, 0, n}}, ++seed);
    expect_gdn_parity(h, {{2, 4, 3}, {0, 0, 1}, {1, 9, 8}}, ++seed);
  }
  expect_gdn_parity({2, 6, 16, 16}, {{1, 0, 33}}, ++seed);
  expect_gdn_parity({2, 6, 16, 16}, {}, ++seed);
}

TEST(GdnOp, ParityOfBrokenInputs) {
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    expect_gdn_parity({2, 4, 16, 33}, {{2, 4, 3}, {0, 0, 1}}, seed, true);
  }
}

// The recurrence in double.
TEST(GdnOp, IsTheDeltaRule) {
  testing::Rng rng(7);
  const Heads h{2, 6, 8, 12};
  constexpr int kRows = 20;
  const testing::TestRows rows(rng, {{0, 0, kRows}}, {.max_rows = kRows});
  const Inputs in(rng, h, kRows);
  DeltaMemory memory(rng, h, 1, 4);
  const std::vector<float> before = memory.side(0, rows.rows().side[0]);
  Machine& m = *testing::machines()[0];
  std::vector<float> o(static_cast<size_t>(kRows * h.value_heads * h.dv));
  m.run(m.ops().gdn, in.args(h, rows.rows(), memory.state(),
                             View<float>(o.data(), {kRows, h.value_heads * h.dv})));
  const auto sigm = [](double x) { return 1 / (1 + std::exp(-x)); };
  for (int head = 0; head < h.value_heads; ++head) {
    std::vector<double> s(before.begin() + head * h.dk * h.dv,
                          before.begin() + (head + 1) * h.dk * h.dv);
    for (int t = 0; t < kRows; ++t) {
      const float* row = in.qkv.data() + t * h.channels();
      const auto unit = [&](const float* x, double scale) {
        double sum = 0;
        for (int i = 0; i < h.dk; ++i) sum += static_cast<double>(x[i]) * x[i];
        std::vector<double> y;
        for (int i = 0; i < h.dk; ++i) y.push_back(x[i] / std::sqrt(sum + 1e-6) * scale);
        return y;
      };
      const int kh = head % h.key_heads;
      const std::vector<double> q = unit(row + kh * h.dk, 1 / std::sqrt(h.dk)),
                                k = unit(row + (h.key_heads + kh) * h.dk, 1);
      const float* v = row + 2 * h.key_heads * h.dk + head * h.dv;
      const double beta = sigm(in.beta[t * h.value_heads + head]);
      const double x = in.alpha[t * h.value_heads + head] + in.dt[head];
      const double decay = std::exp(in.a[head] * std::log1p(std::exp(x)));
      for (double& each : s) each *= decay;
      for (int j = 0; j < h.dv; ++j) {
        double recalled = 0, result = 0;
        for (int i = 0; i < h.dk; ++i) recalled += s[i * h.dv + j] * k[i];
        for (int i = 0; i < h.dk; ++i) {
          s[i * h.dv + j] += k[i] * beta * (v[j] - recalled);
          result += s[i * h.dv + j] * q[i];
        }
        EXPECT_NEAR(o[(t * h.value_heads + head) * h.dv + j], result, 2e-6) << t << "," << head;
      }
    }
  }
}

// Any cut of the rows into steps gives the same bits.
TEST(GdnOp, DoesNotDependOnTheCut) {
  testing::Rng rng(8);
  const Heads h{2, 4, 16, 40};
  constexpr int kRows = 13;
  const Inputs in(rng, h, kRows);
  const DeltaMemory memory(rng, h, 1, 4);
  std::vector<std::vector<int>> cuts = {{13}, {1, 12}, {5, 5, 3}};
  cuts.emplace_back(13, 1);
  for (const auto& m : testing::machines()) {
    std::vector<float> expected_o, expected_s;
    for (const std::vector<int>& cut : cuts) {
      testing::Rng same(9);
      testing::TestRows rows(same, {}, {.max_rows = kRows});
      DeltaMemory own = memory;
      std::vector<float> o(static_cast<size_t>(kRows * h.value_heads * h.dv));
      int at = 0;
      for (int n : cut) {
        rows.set_sequences({{0, at, n}});
        m->run(m->ops().gdn, in.args(h, rows.rows(), own.state(),
                                     View<float>(o.data() + at * h.value_heads * h.dv,
                                                 {kRows - at, h.value_heads * h.dv}),
                                     at));
        rows.flip(0);
        at += n;
      }
      const std::vector<float> s = own.side(0, rows.rows().side[0]);
      if (expected_o.empty()) {
        expected_o = o;
        expected_s = s;
      }
      EXPECT_EQ(o, expected_o) << m->name() << ", " << cut.size() << " steps";
      EXPECT_EQ(s, expected_s) << m->name() << ", " << cut.size() << " steps";
    }
  }
}

TEST(GdnCommitOp, EqualsAStepOfTheRowsKept) {
  testing::Rng rng(10);
  for (const Heads& h : {Heads{2, 6, 16, 33}, Heads{1, 2, 7, 8}, Heads{1, 1, 128, 128}}) {
    constexpr int kWindow = 5;
    const Inputs in(rng, h, kWindow);
    const DeltaMemory memory(rng, h, 2, kWindow);
    testing::TestRows rows(rng, {}, {.slots = 2, .max_rows = kWindow});
    std::vector<float> o(static_cast<size_t>(kWindow * h.value_heads * h.dv));
    const View<float> out(o.data(), {kWindow, h.value_heads * h.dv});
    for (int n = 2; n <= kWindow; n += 3) {
      for (int kept = 0; kept <= n; ++kept) {
        for (const auto& m : testing::machines()) {
          const int side = rows.rows().side[1];
          DeltaMemory own = memory, undisturbed = memory;
          rows.set_sequences({{1, 3, n}});
          m->run(m->ops().gdn, in.args(h, rows.rows(), own.state(), out));
          const int32_t keep[] = {kept};
          m->run(m->ops().gdn_commit, GdnCommit{.rows = rows.rows(),
                                                .kept = keep,
                                                .key_heads = h.key_heads,
                                                .value_heads = h.value_heads,
                                                .dk = h.dk,
                                                .dv = h.dv,
                                                .state = own.state()});
          rows.set_sequences({{1, 3, kept}});
          if (kept > 0) m->run(m->ops().gdn, in.args(h, rows.rows(), undisturbed.state(), out));
          const int new_side = kept > 0 ? 1 - side : side;
          EXPECT_EQ(own.side(1, new_side), undisturbed.side(1, new_side))
              << m->name() << " kept " << kept << " of " << n;
          EXPECT_EQ(own.side(1, side), DeltaMemory(memory).side(1, side));
          EXPECT_EQ(own.side(0, 0), DeltaMemory(memory).side(0, 0)) << "another slot";
        }
      }
    }
  }
}

TEST(GdnCommitOp, LeavesOtherSequencesAlone) {
  testing::Rng rng(11);
  const Heads h{1, 2, 8, 8};
  const DeltaMemory memory(rng, h, 2, 4);
  const testing::TestRows rows(rng, {{1, 0, 3}}, {.slots = 2});
  const int32_t kept[] = {-1};
  for (const auto& m : testing::machines()) {
    DeltaMemory own = memory;
    m->run(m->ops().gdn_commit, GdnCommit{.rows = rows.rows(),
                                          .kept = kept,
                                          .key_heads = 1,
                                          .value_heads = 2,
                                          .dk = 8,
                                          .dv = 8,
                                          .state = own.state()});
    EXPECT_EQ(own.s, memory.s);
  }
}

TEST(GatedNormOp, Parity) {
  testing::Rng rng(12);
  for (int heads : {1, 3, 6}) {
    for (int dv : {1, 8, 31, 33, 128}) {
      for (int n_rows : {0, 1, 2, 7}) {
        const int max_rows = n_rows + 1, width = heads * dv;
        std::vector<float> o = testing::normal(rng, max_rows * width);
        const std::vector<float> z = testing::normal(rng, max_rows * width, 4),
                                 w = testing::normal(rng, dv);
        if (n_rows == 7) testing::salt(rng, o, 30, true);
        const int32_t count = n_rows;
        testing::expect_same(format("{} x {}, {} rows", heads, dv, n_rows), [&](Machine& m) {
          std::vector<float> y(static_cast<size_t>(max_rows * width), -7.5f);
          m.run(m.ops().gated_norm, GatedNorm{.n_rows = &count,
                                              .o = View<const float>(o.data(), {max_rows, width}),
                                              .z = View<const float>(z.data(), {max_rows, width}),
                                              .w = w.data(),
                                              .dv = dv,
                                              .eps = 1e-6f,
                                              .out = View<float>(y.data(), {max_rows, width})});
          EXPECT_EQ(y.back(), -7.5f);
          Outputs out;
          out.add("y", y);
          return out;
        });
      }
    }
  }
}

}  // namespace
}  // namespace strata::kernels
