#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "strata/base/format.h"
#include "strata/device/registry.h"
#include "strata/gguf/model.h"
#include "strata/model/model.h"
#include "strata/quant/decode.h"

// The forward pass against stored float32 outputs of an independent implementation
// (tests/golden/qwen4exp/README.md). Bounds: docs/model.md, "tolerances".
namespace strata::model {
namespace {

std::string golden(const std::string& name) {
  return std::string(STRATA_SOURCE_DIR) + "/tests/golden/qwen4exp/" + name;
}

std::vector<float> array(const gguf::Model& file, const std::string& name) {
  const gguf::Tensor& tensor = file.get(name);
  const std::vector<std::byte> raw = file.read(tensor);
  std::vector<float> values(tensor.n_values);
  if (tensor.type->type == quant::Type::kI32) {
    for (size_t i = 0; i < values.size(); ++i) {
      int32_t v;
      std::memcpy(&v, raw.data() + 4 * i, 4);
      values[i] = static_cast<float>(v);
    }
  } else {
    quant::decode(tensor.type->type, raw.data(), values);
  }
  return values;
}

std::vector<int32_t> ids_of(const gguf::Model& reference) {
  const std::vector<float> values = array(reference, "ids");
  return {values.begin(), values.end()};
}

float max_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float worst = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    worst = std::max(worst, std::abs(a[i] - b[i]));
  }
  return worst;
}

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

// A model on a device of its own.
struct Loaded {
  gguf::Model file;
  ThreadPool pool;
  memory::Plan plan;
  std::vector<std::unique_ptr<device::Device>> devices;
  device::Device* device;
  std::unique_ptr<device::Stream> stream;
  std::unique_ptr<Model> model;

  Loaded(const std::string& name, int chunk, device::Backend backend,
         const std::string& spec = "host", int threads = 2, uint64_t seed = 1)
      : file(gguf::Model::open(golden(name + ".gguf"))), pool(threads) {
    devices = device::make_devices(spec, {.pool = &pool, .backend = backend, .seed = seed});
    device = devices.back().get();
    stream = device->make_stream("compute");
    model = open_model(file,
                       {.max_context = 512,
                        .slots = 2,
                        .chunk = chunk,
                        .max_out = chunk,
                        .cache = kernels::CacheType::kF32,
                        .draft = true},
                       *device, plan);
    model->load({});
  }
  ~Loaded() { wait(); }
  void wait() {
    ASSERT_TRUE(stream->drain({"test", "step"},
                              device::Deadline::within(std::chrono::minutes(2))));
  }
  std::vector<float> step(SessionState& session, std::span<const int32_t> ids) {
    model->begin_step();
    model->add(session, ids);
    std::vector<int32_t> rows;
    for (size_t i = 0; i < ids.size(); ++i) rows.push_back(static_cast<int32_t>(i));
    model->inputs().set_outputs(rows);
    model->inputs().upload(*stream);
    model->forward(*stream);
    model->head(*stream);
    wait();
    session.commit(static_cast<int>(ids.size()));
    const View<float> logits = model->logits();
    return {logits.data(), logits.data() + static_cast<int64_t>(ids.size()) * logits.extent(1)};
  }
  std::vector<float> run(SessionState& session, const std::vector<int32_t>& ids, size_t chunk) {
    std::vector<float> logits;
    for (size_t at = 0; at < ids.size(); at += chunk) {
      const std::vector<float> part =
          step(session, std::span(ids).subspan(at, std::min(chunk, ids.size() - at)));
      logits.insert(logits.end(), part.begin(), part.end());
    }
    return logits;
  }
};

class Golden : public testing::TestWithParam<std::tuple<const char*, int, device::Backend>> {};

TEST_P(Golden, EveryLayerEqualsTheReference) {
  const auto& [name, chunk, backend] = GetParam();
  const gguf::Model reference = gguf::Model::open(golden(std::string(name) + ".reference.gguf"));
  const std::vector<int32_t> ids = ids_of(reference);
  Loaded m(name, chunk, backend);
  Trace trace(m.model->info().n_layers);
  m.model->set_observer(&trace);
  SessionState session(m.model->states(), *m.stream, 512);
  const std::vector<float> logits = m.run(session, ids, static_cast<size_t>(chunk));

  EXPECT_LE(max_difference(logits, array(reference, "logits")), 1e-4f);
  for (int l = 0; l < m.model->info().n_layers; ++l) {
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
    testing::Combine(testing::Values("tiny", "tiny-yarn", "tiny-nople"), testing::Values(1, 7, 128),
                     testing::Values(device::Backend::kRef, device::Backend::kCpu)),
    [](const auto& instance) {
      std::string text = format("{}_{}_{}", std::get<0>(instance.param), std::get<1>(instance.param),
                                std::get<2>(instance.param) == device::Backend::kRef ? "ref" : "cpu");
      std::replace(text.begin(), text.end(), '-', '_');
      return text;
    });

}  // namespace
}  // namespace strata::model
