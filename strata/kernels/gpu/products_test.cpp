#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "strata/base/format.h"
#include "strata/kernels/test_machines.h"
#include "strata/quant/half.h"
#include "strata/quant/term.h"
#include "strata/quant/tiles.h"

// Every type in both packings: the card's products have the bits of the plain ones.
namespace strata::kernels {
namespace {

using quant::TypeClass;
using quant::TypeTraits;
using testing::Machine;
using testing::Outputs;

// Random blocks: every bit pattern is one. Scales are kept finite, or one result in ten is NaN.
std::vector<std::byte> random_rows(const TypeTraits& t, int rows, int cols, testing::Rng& rng) {
  std::vector<std::byte> w(static_cast<size_t>(rows) *
                           quant::row_bytes(t.type, static_cast<uint64_t>(cols)));
  const auto block = static_cast<size_t>(t.block_bytes);
  quant::Term term;
  for (size_t at = 0; at < w.size(); at += block) {
    for (bool finite = false; !finite;) {
      for (size_t i = 0; i < block; ++i) w[at + i] = static_cast<std::byte>(rng());
      finite = true;
      for (int i = 0; i < t.block_values / std::max(t.term_values, 1) && t.unpack; ++i) {
        term.dmin = 0;
        t.unpack(&w[at], i, term);
        finite = finite && std::isfinite(term.d) && std::isfinite(term.dmin);
      }
      if (t.unpack == nullptr) {
        float value = 0;
        t.decode_floats(&w[at], 1, &value);
        finite = std::isfinite(value) && std::fabs(value) < 1e6F;
      }
    }
  }
  return w;
}

struct Tiles {
  explicit Tiles(size_t n) : bytes(n + 64) {}
  std::byte* data() { return bytes.data() + (64 - reinterpret_cast<uintptr_t>(bytes.data()) % 64); }
  std::vector<std::byte> bytes;
};

void expect_products(const std::string& what, const Weight& w, int n_rows, testing::Rng& rng) {
  const int max_rows = n_rows + 1;
  const std::vector<float> x = testing::normal(rng, int64_t{max_rows} * w.cols);
  const auto count = std::make_unique<int32_t>(n_rows);
  testing::expect_same(what, [&](Machine& m) {
    std::vector<float> y(static_cast<size_t>(max_rows) * static_cast<size_t>(w.rows), -7.5F);
    m.run(m.ops().matmul, MatMul{.n_rows = count.get(),
                                 .x = View<const float>(x.data(), {max_rows, w.cols}),
                                 .out = {{{w, View<float>(y.data(), {max_rows, w.rows})}}},
                                 .n_out = 1});
    EXPECT_EQ(y.back(), -7.5F);
    Outputs out;
    out.add("y", y);
    return out;
  });
}

TEST(ProductsOnACard, EveryTypeAndPacking) {
  testing::Rng rng(1);
  for (const TypeTraits& t : quant::all_types()) {
    if (t.type_class == TypeClass::kPlain) continue;
    const int unit = std::max({t.block_values, t.activation_block, 32});
    // Fewer blocks than segments, odd numbers of them, and more than one chunk of shared memory.
    for (int blocks : {1, 3, 10, 35}) {
      for (int n_rows : {1, 3, 4, 6}) {
        const int cols = blocks * unit, rows = 33;
        const std::vector<std::byte> bytes = random_rows(t, rows, cols, rng);
        Weight w{.data = bytes.data(), .rows = rows, .cols = cols, .type = t.type};
        const std::string what =
            format("{} {} x {}, {} rows", quant::name(t.type), rows, cols, n_rows);
        expect_products(what, w, n_rows, rng);
        if (!quant::tile_form(t.type)) continue;
        const size_t tile = 16 * bytes.size() / 33;
        Tiles tiles(2 * tile);
        for (size_t i = 0; i < 2; ++i) {
          quant::to_tile(t.type, cols, bytes.data() + i * tile, tiles.data() + i * tile);
        }
        w.data = tiles.data();
        w.rows = 32;
        w.packing = Packing::kTiles;
        expect_products(what + " in tiles", w, n_rows, rng);
      }
    }
  }
}

}  // namespace
}  // namespace strata::kernels
