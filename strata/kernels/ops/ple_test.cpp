#include "strata/kernels/ops/ple.h"

#include <gtest/gtest.h>

#include <cmath>

#include "strata/base/format.h"
#include "strata/kernels/test_machines.h"

namespace strata::kernels {
namespace {

using testing::Machine;
using testing::Outputs;
using testing::Seq;

std::vector<float> unwritten(int64_t n) {
  return std::vector<float>(static_cast<size_t>(n), -7.5f);
}

TEST(PleMixOp, Parity) {
  testing::Rng rng(1);
  for (int streams : {1, 2, 4}) {
    for (int width : {1, 31, 32, 33, 157}) {
      for (int n_rows : {0, 1, 3, 7}) {
        const int max_rows = n_rows + 1, wide = streams * width;
        std::vector<float> key = testing::normal(rng, max_rows * wide);
        std::vector<float> h = testing::normal(rng, max_rows * wide);
        const std::vector<float> value = testing::normal(rng, max_rows * width);
        const std::vector<float> nk = testing::normal(rng, wide), nq = testing::normal(rng, wide),
                                 nc = testing::normal(rng, wide);
        if (n_rows == 3) std::fill(key.begin(), key.end(), 0.0f);  // a = 0: sign(0) is 0
        if (n_rows == 7) testing::salt(rng, h, 40, true);
        const int32_t count = n_rows;
        testing::expect_same(format("{} x {}, {} rows", streams, width, n_rows), [&](Machine& m) {
          std::vector<float> z = unwritten(max_rows * wide), normed = z;
          m.run(m.ops().ple_mix,
                PleMix{.n_rows = &count,
                       .key = View<const float>(key.data(), {max_rows, wide}),
                       .value = View<const float>(value.data(), {max_rows, width}),
                       .residual = View<const float>(h.data(), {max_rows, streams, width}),
                       .norm_key = nk.data(),
                       .norm_query = nq.data(),
                       .norm_conv = nc.data(),
                       .eps = 1e-6f,
                       .z = View<float>(z.data(), {max_rows, wide}),
                       .normed = View<float>(normed.data(), {max_rows, wide})});
          EXPECT_EQ(z.back(), -7.5f);
          Outputs out;
          out.add("z", z);
          out.add("normed", normed);
          return out;
        });
      }
    }
  }
}

TEST(PleMixOp, AGateOfZeroHalvesTheValue) {
  const std::vector<float> key(4, 0.0f), h = {1, 2, 3, 4}, value = {2, 4, 6, 8}, ones(4, 1.0f);
  const int32_t count = 1;
  for (const auto& m : testing::machines()) {
    std::vector<float> z(4), normed(4);
    m->run(m->ops().ple_mix, PleMix{.n_rows = &count,
                                    .key = View<const float>(key.data(), {1, 4}),
                                    .value = View<const float>(value.data(), {1, 4}),
                                    .residual = View<const float>(h.data(), {1, 1, 4}),
                                    .norm_key = ones.data(),
                                    .norm_query = ones.data(),
                                    .norm_conv = ones.data(),
                                    .eps = 1e-6f,
                                    .z = View<float>(z.data(), {1, 4}),
                                    .normed = View<float>(normed.data(), {1, 4})});
    EXPECT_EQ(z, (std::vector<float>{1, 2, 3, 4})) << m->name();
  }
}

// A tail's memory: [slots, 2, depth, width] and its log.
struct TailMemory {
  TailMemory(testing::Rng& rng, int slots, int depth, int width, int window)
      : shape{slots, depth, width, window},
        state(testing::normal(rng, int64_t{slots} * 2 * depth * width)),
        log(testing::normal(rng, int64_t{slots} * window * width)) {}
  Tail tail() {
    if (shape.depth == 0) return {};
    return {.state = View<float>(state.data(), {shape.slots, 2, shape.depth, shape.width}),
            .log = View<float>(log.data(), {shape.slots, shape.window, shape.width})};
  }
  struct {
    int slots, depth, width, window;
  } shape;
  std::vector<float> state, log;
};

struct ConvCase {
  int channels, taps, dilation;
  bool with_z;
  std::vector<Seq> sequences;
};

void expect_conv_parity(const ConvCase& c, uint32_t seed) {
  testing::Rng rng(seed);
  constexpr int kWindow = 5;
  const int slots = 3;
  const testing::TestRows rows(rng, c.sequences, {.slots = slots});
  const int n = rows.max_rows();
  const std::vector<float> x = testing::normal(rng, int64_t{n} * c.channels),
                           z = testing::normal(rng, int64_t{n} * c.channels),
                           before = testing::normal(rng, int64_t{n} * c.channels),
                           w = testing::normal(rng, int64_t{c.channels} * c.taps);
  const TailMemory tail(rng, slots, c.dilation * (c.taps - 1), c.channels, kWindow);
  testing::expect_same(
      format("{} channels, {} taps x {}, {} sequences", c.channels, c.taps, c.dilation,
             c.sequences.size()),
      [&](Machine& m) {
        TailMemory own = tail;
        std::vector<float> y = before;
        m.run(m.ops().conv, Conv{.rows = rows.rows(),
                                 .x = View<const float>(x.data(), {n, c.channels}),
                                 .w = w.data(),
                                 .taps = c.taps,
                                 .dilation = c.dilation,
                                 .z = c.with_z ? View<const float>(z.data(), {n, c.channels})
                                               : View<const float>(),
                                 .tail = own.tail(),
                                 .out = View<float>(y.data(), {n, c.channels})});
        EXPECT_EQ(y.back(), before.back()) << "a row that does not count was written";
        Outputs out;
        out.add("y", y);
        out.add("state", own.state);
        out.add("log", own.log);
        return out;
      });
}

TEST(ConvOp, Parity) {
  uint32_t seed = 10;
  const std::vector<std::vector<Seq>> layouts = {
      {{0, 0, 1}}, {{1, 4, 7}}, {{2, 9, 2}, {0, 3, 1}, {1, 0, 5}}, {}};
  for (const std::vector<Seq>& sequences : layouts) {
    for (bool with_z : {false, true}) {
      for (int channels : {1, 31, 33, 1023, 1025}) {
        expect_conv_parity({channels, 4, with_z ? 3 : 1, with_z, sequences}, ++seed);
      }
      for (int taps : {1, 2, 3, 8}) expect_conv_parity({40, taps, 2, with_z, sequences}, ++seed);
    }
  }
}

// The definition, token by token, over the whole history.
TEST(ConvOp, SeesTheTokensBeforeItsRows) {
  testing::Rng rng(3);
  constexpr int kTokens = 23, kChannels = 5, kTaps = 4, kDilation = 3;
  const std::vector<float> x = testing::normal(rng, kTokens * kChannels),
                           w = testing::normal(rng, kChannels * kTaps);
  for (const auto& m : testing::machines()) {
    TailMemory tail(rng, 1, kDilation * (kTaps - 1), kChannels, 4);
    std::fill(tail.state.begin(), tail.state.end(), 0.0f);
    std::vector<float> y;
    int at = 0;
    testing::TestRows rows(rng, {}, {.max_rows = kTokens});
    for (int n : {1, 4, 2, 1, 9, 6}) {
      rows.set_sequences({{0, at, n}});
      std::vector<float> part(static_cast<size_t>(n * kChannels));
      m->run(m->ops().conv, Conv{.rows = rows.rows(),
                                 .x = View<const float>(x.data() + at * kChannels, {n, kChannels}),
                                 .w = w.data(),
                                 .taps = kTaps,
                                 .dilation = kDilation,
                                 .tail = tail.tail(),
                                 .out = View<float>(part.data(), {n, kChannels})});
      rows.flip(0);
      y.insert(y.end(), part.begin(), part.end());
      at += n;
    }
    for (int t = 0; t < kTokens; ++t) {
      for (int c = 0; c < kChannels; ++c) {
        double sum = 0;
        for (int k = 0; k < kTaps; ++k) {
          const int from = t - kDilation * (kTaps - 1 - k);
          if (from >= 0) sum += static_cast<double>(w[c * kTaps + k]) * x[from * kChannels + c];
        }
        const double expected = sum / (1 + std::exp(-sum));
        EXPECT_NEAR(y[static_cast<size_t>(t * kChannels + c)], expected, 2e-6) << t << "," << c;
      }
    }
  }
}

// A window of which k rows are kept leaves what a step of exactly these rows leaves.
TEST(TailCommitOp, EqualsAStepOfTheRowsKept) {
  testing::Rng rng(4);
  constexpr int kChannels = 37, kTaps = 4;
  for (int dilation : {1, 3}) {
    const int depth = dilation * (kTaps - 1);
    for (int window : {2, 5, 16}) {
      for (int kept = 0; kept <= window; ++kept) {
        const std::vector<float> x = testing::normal(rng, window * kChannels),
                                 w = testing::normal(rng, kChannels * kTaps);
        testing::TestRows rows(rng, {}, {.slots = 2, .max_rows = 2 * window});
        const TailMemory tail(rng, 2, depth, kChannels, window);
        const auto step = [&](Machine& m, TailMemory& own, int n) {
          rows.set_sequences({{1, 7, n}});
          std::vector<float> y(static_cast<size_t>(window * kChannels));
          m.run(m.ops().conv, Conv{.rows = rows.rows(),
                                   .x = View<const float>(x.data(), {window, kChannels}),
                                   .w = w.data(),
                                   .taps = kTaps,
                                   .dilation = dilation,
                                   .tail = own.tail(),
                                   .out = View<float>(y.data(), {window, kChannels})});
        };
        for (const auto& m : testing::machines()) {
          TailMemory own = tail, undisturbed = tail;
          step(*m, own, window);
          const int32_t keep[] = {kept};
          m->run(m->ops().tail_commit,
                 TailCommit{.rows = rows.rows(), .kept = keep, .tail = own.tail()});
          if (kept > 0) step(*m, undisturbed, kept);
          const int side = rows.rows().side[1];
          const Tail a = own.tail(), b = undisturbed.tail();
          const int new_side = kept > 0 ? 1 - side : side;
          EXPECT_TRUE(std::equal(a.side(1, new_side), a.side(1, new_side) + depth * kChannels,
                                 b.side(1, new_side)))
              << m->name() << " kept " << kept << " of " << window;
          EXPECT_TRUE(std::equal(a.side(1, side), a.side(1, side) + depth * kChannels,
                                 TailMemory(tail).tail().side(1, side)))
              << "the committed side was written";
        }
      }
    }
  }
}

TEST(TailCommitOp, LeavesOtherSequencesAlone) {
  testing::Rng rng(5);
  testing::TestRows rows(rng, {{0, 3, 4}, {2, 0, 4}}, {.slots = 3});
  const TailMemory tail(rng, 3, 3, 9, 4);
  const int32_t kept[] = {-1, 2};
  for (const auto& m : testing::machines()) {
    TailMemory own = tail;
    m->run(m->ops().tail_commit, TailCommit{.rows = rows.rows(), .kept = kept, .tail = own.tail()});
    const size_t a_slot = 2 * 3 * 9;
    EXPECT_TRUE(std::equal(own.state.begin(), own.state.begin() + 2 * a_slot, tail.state.begin()));
    EXPECT_EQ(own.log, tail.log);
    EXPECT_NE(own.state, tail.state);
  }
}

}  // namespace
}  // namespace strata::kernels
