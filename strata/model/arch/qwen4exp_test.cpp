#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "strata/base/format.h"
#include "strata/gguf/test_rewrite.h"
#include "strata/model/test_model.h"

// The forward pass against stored float32 outputs of an independent implementation
// (tests/golden/qwen4exp/README.md). Bounds: docs/model.md, "Tolerances".
namespace strata::model {
namespace {

using model::testing::array;
using model::testing::Loaded;
using model::testing::max_difference;

// Everything that a run leaves behind, token after token.
struct Trace : LayerObserver {
  std::vector<std::vector<float>> residuals, weights;
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<std::vector<int32_t>>> blocks;  // [layer][token]; {-1}: all
  explicit Trace(int layers)
      : residuals(static_cast<size_t>(layers)),
        weights(residuals.size()),
        ids(residuals.size()),
        blocks(residuals.size()) {}
  void residual(int layer, View<const float> rows) override { append(residuals, layer, rows); }
  void experts(int layer, View<const int32_t> id, View<const float> weight) override {
    append(ids, layer, id);
    append(weights, layer, weight);
  }
  void selection(int layer, int, View<const int32_t> rows, View<const int32_t> n) override {
    if (static_cast<size_t>(layer) >= blocks.size()) return;
    for (int64_t r = 0; r < n.extent(0); ++r) {
      std::vector<int32_t> list = {-1};
      if (n[r] >= 0) list.assign(rows.row(r), rows.row(r) + n[r]);
      blocks[static_cast<size_t>(layer)].push_back(list);
    }
  }
  template <class T>
  static void append(std::vector<std::vector<T>>& to, int layer, View<const T> view) {
    if (static_cast<size_t>(layer) >= to.size()) return;
    auto& v = to[static_cast<size_t>(layer)];
    v.insert(v.end(), view.data(), view.data() + view.size());
  }
};

class Golden : public ::testing::TestWithParam<std::tuple<const char*, int, device::Backend>> {};

TEST_P(Golden, EveryLayerEqualsTheReference) {
  const auto& [name, chunk, backend] = GetParam();
  const gguf::Model reference = gguf::Model::open(model::testing::reference_path(name));
  const std::vector<int32_t> ids = model::testing::ids_of(reference);
  Loaded m(name, {.chunk = chunk, .backend = backend, .threads = 2});
  Trace trace(m.model().info().n_layers);
  m.model().set_observer(&trace);
  const auto session = m.session();
  const std::vector<float> logits = m.run(*session, ids, chunk);

  EXPECT_LE(max_difference(logits, array(reference, "logits")), 1e-4f);
  for (int l = 0; l < m.model().info().n_layers; ++l) {
    const size_t i = static_cast<size_t>(l);
    EXPECT_LE(max_difference(trace.residuals[i], array(reference, format("residual_{}", l))), 2e-4f)
        << "layer " << l;
    const std::vector<float> id = array(reference, format("expert_ids_{}", l));
    EXPECT_EQ(std::vector<float>(trace.ids[i].begin(), trace.ids[i].end()), id) << "layer " << l;
    EXPECT_LE(max_difference(trace.weights[i], array(reference, format("expert_weights_{}", l))),
              2e-5f);
    if (!reference.find(format("selected_{}", l))) continue;
    const std::vector<float> wanted = array(reference, format("selected_{}", l));
    std::vector<float> selected(wanted.size());
    const size_t n = ids.size();
    ASSERT_EQ(trace.blocks[i].size(), n);
    for (size_t t = 0; t < n; ++t) {
      const std::vector<int32_t>& blocks = trace.blocks[i][t];
      const bool all = blocks == std::vector<int32_t>{-1};
      for (size_t s = all ? 0 : (t + 1) / 4 * 4; s <= t; ++s) selected[t * n + s] = 1;
      for (size_t b = 0; !all && b < blocks.size(); ++b) {
        for (size_t j = 0; j < 4; ++j) selected[t * n + static_cast<size_t>(blocks[b]) * 4 + j] = 1;
      }
    }
    EXPECT_EQ(selected, wanted) << "layer " << l;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Qwen4Exp, Golden,
    ::testing::Combine(::testing::Values("tiny", "tiny-yarn", "tiny-nople"),
                       ::testing::Values(1, 7, 128),
                       ::testing::Values(device::Backend::kRef, device::Backend::kCpu)),
    [](const auto& instance) {
      std::string text =
          format("{}_{}_{}", std::get<0>(instance.param), std::get<1>(instance.param),
                 std::get<2>(instance.param) == device::Backend::kRef ? "ref" : "cpu");
      std::replace(text.begin(), text.end(), '-', '_');
      return text;
    });

class Greedy : public ::testing::TestWithParam<const char*> {};

TEST_P(Greedy, ContinuesLikeTheReference) {
  const gguf::Model reference = gguf::Model::open(model::testing::reference_path(GetParam()));
  const std::vector<int32_t> ids = model::testing::ids_of(reference);
  const std::vector<int32_t> expected = model::testing::ids_of(reference, "greedy_from_40");
  for (int chunk : {1, 7, 512}) {
    Loaded m(GetParam(), {.chunk = chunk});
    const auto session = m.session();
    const auto n_vocab = static_cast<size_t>(m.n_vocab());
    std::vector<float> logits = m.run(*session, std::span(ids).first(40), chunk);
    std::vector<int32_t> answer;
    while (answer.size() < expected.size()) {
      answer.push_back(model::testing::argmax(std::span(logits).last(n_vocab)));
      logits = m.step(*session, std::span(answer).last(1));
    }
    EXPECT_EQ(answer, expected) << "chunk " << chunk;
  }
}

INSTANTIATE_TEST_SUITE_P(Qwen4Exp, Greedy, ::testing::Values("tiny", "tiny-yarn", "tiny-nople"),
                         [](const auto& instance) {
                           std::string text = instance.param;
                           std::replace(text.begin(), text.end(), '-', '_');
                           return text;
                         });

// The quantised demo against logits from before its weights were quantised.
TEST(Demo, IsCloseToItsReference) {
  const gguf::Model reference = gguf::Model::open(model::testing::reference_path("strata-demo"));
  Loaded m("strata-demo", {.chunk = 64, .cache = kernels::CacheType::kF16, .threads = 2});
  model::testing::Closeness all;
  for (int k = 0; k < 4; ++k) {
    const auto session = m.session();
    const std::vector<int32_t> ids = model::testing::ids_of(reference, format("ids_{}", k));
    all.add(m.run(*session, ids, 64), array(reference, format("logits_{}", k)), m.n_vocab());
  }
  EXPECT_EQ(all.rows, 121);
  EXPECT_LE(all.mean_kl(), 0.04);
  EXPECT_GE(all.agreement(), 0.93);
  RecordProperty("mean_kl", std::to_string(all.mean_kl()));
  RecordProperty("argmax_agreement", std::to_string(all.agreement()));
}

// The same weights decoded to F32 take f32 activations: what is left is what int8 activations and
// f16 cells cost. Most of it is a handful of rows where a rounding turns a router's choice
// (docs/model.md).
TEST(Demo, IsCloseToExactArithmetic) {
  const gguf::Model demo = gguf::Model::open(model::testing::model_path("strata-demo"));
  gguf::testing::Changes decoded;
  for (const gguf::Tensor& tensor : demo.tensors()) {
    if (tensor.type->type_class != quant::TypeClass::kQuantised) continue;
    decoded.forms[std::string(tensor.name)] = {quant::Type::kF32,
                                               {tensor.shape().begin(), tensor.shape().end()}};
  }
  decoded.edit = [&](std::string_view name, std::vector<std::byte>& bytes) {
    if (!decoded.forms.contains(std::string(name))) return;
    const std::vector<float> values = array(demo, std::string(name));
    ASSERT_EQ(values.size() * 4, bytes.size());
    std::copy_n(reinterpret_cast<const std::byte*>(values.data()), bytes.size(), bytes.data());
  };
  Loaded exact(gguf::testing::rewritten(demo, decoded), {.chunk = 64, .threads = 2});
  Loaded m("strata-demo", {.chunk = 64, .cache = kernels::CacheType::kF16, .threads = 2});
  const gguf::Model reference = gguf::Model::open(model::testing::reference_path("strata-demo"));
  model::testing::Closeness all;
  for (int k = 0; k < 4; ++k) {
    const std::vector<int32_t> ids = model::testing::ids_of(reference, format("ids_{}", k));
    const auto a = exact.session(), b = m.session();
    all.add(m.run(*b, ids, 64), exact.run(*a, ids, 64), m.n_vocab());
  }
  EXPECT_LE(all.mean_kl(), 3e-3);
  EXPECT_GE(all.equal_argmax, 119);
  RecordProperty("mean_kl", std::to_string(all.mean_kl()));

  // What the demo was trained for, and enough of it that the mean is no draw.
  std::ifstream file(STRATA_SOURCE_DIR "/tests/golden/qwen4exp/conversations.txt");
  model::testing::Closeness conversations;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    const std::vector<int32_t> ids{std::istream_iterator<int32_t>(words), {}};
    const auto a = exact.session(), b = m.session();
    conversations.add(m.run(*b, ids, 64), exact.run(*a, ids, 64), m.n_vocab());
  }
  EXPECT_EQ(conversations.rows, 747);
  EXPECT_LE(conversations.mean_kl(), 2e-3);
  EXPECT_GE(conversations.agreement(), 0.99);
  RecordProperty("mean_kl_conversations", std::to_string(conversations.mean_kl()));
}

// Cells of one byte against cells of two, row by row: no row stands out, neither where pages and
// blocks end nor behind a state that was put back.
TEST(Int8Cells, F127_EveryRowIsCloseToHalfPrecision) {
  for (const char* name : {"tiny", "tiny-yarn", "tiny-nople"}) {
    Loaded half(name, {.cache = kernels::CacheType::kF16});
    Loaded m(name, {.cache = kernels::CacheType::kI8});
    const std::vector<int32_t> ids = model::testing::text_of(name);
    const auto a = half.session(), b = m.session();
    const std::vector<float> expected = half.run(*a, ids, 64), got = m.run(*b, ids, 64);
    const auto n = static_cast<size_t>(m.n_vocab());
    double most = 0;
    for (size_t row = 0; row < ids.size(); ++row) {
      model::testing::Closeness one;
      one.add(std::span(got).subspan(row * n, n), std::span(expected).subspan(row * n, n),
              m.n_vocab());
      most = std::max(most, one.mean_kl());
      EXPECT_LE(one.mean_kl(), 2e-3) << name << ", row " << row;
    }
    EXPECT_GT(most, 0) << name;  // they are not the same cells

    // Back to a third, and on from there.
    const size_t third = ids.size() / 3;
    const auto c = m.session();
    m.run(*c, std::span(ids).first(third), 64);
    const Checkpoint checkpoint = c->checkpoint();
    m.run(*c, std::span(ids).subspan(third), 64);
    c->restore(checkpoint);
    EXPECT_EQ(m.run(*c, std::span(ids).subspan(third), 64),
              std::vector<float>(got.begin() + static_cast<int64_t>(third * n), got.end()))
        << name;
  }
}

// F-109: experts of nonsense. Rows go through to the end, ids stay in range, and NaN reaches the
// logits; what overflows may be normed away again.
TEST(BrokenWeights, RunToTheEnd) {
  const gguf::Model tiny = gguf::Model::open(model::testing::model_path("tiny"));
  for (const std::byte fill : {std::byte{0xff}, std::byte{0x7f}}) {  // NaN, and 3.4e38
    Loaded m(gguf::testing::rewritten(
                 tiny, {.edit =
                            [&](std::string_view name, std::vector<std::byte>& bytes) {
                              if (name == "blk.2.ffn_down_exps.weight") {
                                std::fill(bytes.begin(), bytes.end(), fill);
                              }
                            }}),
             {.chunk = 64, .threads = 2});
    Trace trace(m.model().info().n_layers);
    m.model().set_observer(&trace);
    const auto session = m.session();
    const std::vector<float> logits = m.run(*session, model::testing::text_of("tiny"), 64);
    if (fill == std::byte{0xff}) {
      EXPECT_TRUE(
          std::none_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); }));
    }
    for (const std::vector<int32_t>& ids : trace.ids) {
      for (int32_t id : ids) ASSERT_TRUE(id >= 0 && id < 16) << id;
    }
  }
}

}  // namespace
}  // namespace strata::model
