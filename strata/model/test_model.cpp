#include "strata/model/test_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "strata/base/format.h"
#include "strata/device/registry.h"
#include "strata/quant/decode.h"

namespace strata::model::testing {

std::string model_path(const std::string& name) {
  return format("{}/{}/{}.gguf", STRATA_SOURCE_DIR,
                name == "strata-demo" ? "models" : "tests/golden/qwen4exp", name);
}
std::string reference_path(const std::string& name) {
  return format("{}/tests/golden/qwen4exp/{}.reference.gguf", STRATA_SOURCE_DIR, name);
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

std::vector<int32_t> ids_of(const gguf::Model& reference, const std::string& name) {
  const std::vector<float> values = array(reference, name);
  return {values.begin(), values.end()};
}

std::vector<int32_t> text_of(const std::string& name) {
  const gguf::Model reference = gguf::Model::open(reference_path(name));
  if (name != "strata-demo") return ids_of(reference);
  std::vector<int32_t> ids;
  for (int k = 0; k < 4; ++k) {
    const std::vector<int32_t> part = ids_of(reference, format("ids_{}", k));
    ids.insert(ids.end(), part.begin(), part.end());
  }
  return ids;
}

float max_difference(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  float worst = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const float difference = std::abs(a[i] - b[i]);
    // A NaN is no small difference.
    if (!(difference <= worst)) worst = std::isnan(difference) ? INFINITY : difference;
  }
  return worst;
}

int32_t argmax(std::span<const float> x) {
  return static_cast<int32_t>(std::max_element(x.begin(), x.end()) - x.begin());
}

void Closeness::add(std::span<const float> got, std::span<const float> reference, int64_t n_vocab) {
  ASSERT_EQ(got.size(), reference.size());
  const auto n = static_cast<size_t>(n_vocab);
  const auto log_sum = [](std::span<const float> x) {
    const double best = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (float v : x) sum += std::exp(v - best);
    return best + std::log(sum);
  };
  for (size_t at = 0; at < got.size(); at += n) {
    const std::span<const float> g = got.subspan(at, n), r = reference.subspan(at, n);
    const double gz = log_sum(g), rz = log_sum(r);
    for (size_t i = 0; i < n; ++i) kl_sum += std::exp(r[i] - rz) * ((r[i] - rz) - (g[i] - gz));
    equal_argmax += argmax(g) == argmax(r);
    ++rows;
  }
}

Workplace::Workplace(const std::string& list, const device::DeviceOptions& options, int n_layers)
    : devices(device::make_devices(list, options)) {
  const auto make_stream = [this](device::Device& device) {
    streams.push_back(device.make_stream("compute"));
    return streams.back().get();
  };
  stages.host = devices.front().get();
  stages.host_stream = make_stream(*stages.host);
  const int n_cards = static_cast<int>(devices.size()) - 1, n = std::max(n_cards, 1);
  for (int i = 0; i < n; ++i) {
    device::Device& device = *devices[static_cast<size_t>(n_cards == 0 ? 0 : i + 1)];
    stages.list.push_back({.device = &device,
                           .stream = make_stream(device),
                           .first_layer = i * n_layers / n,
                           .end_layer = (i + 1) * n_layers / n});
  }
}

namespace {

// So many slots for each layer of every card; the draft layer's come last.
ExpertTiers tiers_of(const LoadOptions& options, const Stages& stages, const ModelFacts& facts) {
  ExpertTiers tiers{.ram = options.expert_ram,
                    .max_swaps = options.max_swaps,
                    .swap_margin = options.swap_margin};
  if (!options.expert_slots) return tiers;
  for (const Stage& stage : stages.list) {
    if (stage.is_host()) continue;
    memory::StageSlots slots{.where = stage.device->id()};
    int end = stage.end_layer;
    if (&stage == &stages.last() && options.draft) ++end;
    for (int l = stage.first_layer; l < end; ++l) {
      slots.layers.push_back(l);
      slots.slots.push_back(std::min(*options.expert_slots, facts.n_experts));
    }
    tiers.cards.push_back(std::move(slots));
  }
  return tiers;
}

}  // namespace

Loaded::Loaded(const std::string& name, const LoadOptions& options)
    : Loaded(gguf::Model::open(model_path(name), {.access = options.mapped ? io::Access::kMapped
                                                                           : io::Access::kPlain}),
             options) {}

Loaded::Loaded(gguf::Model file, const LoadOptions& options)
    : options_(options),
      file_(std::move(file)),
      pool_(
          ThreadPoolOptions{.n_threads = options.threads,
                            .cpus = std::vector<std::vector<int>>(
                                options.by_place ? static_cast<size_t>(options.threads) : 0, {0})}),
      place_(options.devices, {.pool = &pool_, .backend = options.backend, .seed = options.seed},
             read_facts(file_).n_layers) {
  if (options.level) level_.emplace(*options.level);
  model_ = open_model(file_,
                      {.max_context = options.max_context,
                       .slots = options.slots,
                       .chunk = options.chunk,
                       .max_out = options.chunk,
                       .window = options.window,
                       .cache = options.cache,
                       .packing = options.packing,
                       .experts = tiers_of(options, place_.stages, read_facts(file_)),
                       .draft = options.draft,
                       .draft_norm_per_stream = options.per_stream,
                       .yarn_factor = options.yarn_factor},
                      place_.stages, plan_);
  model_->load({});
}

Loaded::~Loaded() { wait(); }

void Loaded::wait() {
  for (const auto& stream : place_.streams) {
    ASSERT_TRUE(stream->drain({"test", "step"}, std::chrono::minutes(5)));
  }
}

std::unique_ptr<SessionState> Loaded::session() {
  return std::make_unique<SessionState>(model_->states(), options_.max_context);
}
std::unique_ptr<SessionState> Loaded::draft_session() {
  return std::make_unique<SessionState>(*model_->draft_states(), options_.max_context);
}

int64_t Loaded::residual_width() const {
  return int64_t{model_->info().streams} * model_->info().width;
}

std::vector<float> Loaded::read(const View<float>& from, int64_t n) {
  return model_->copies().read(stream(), from.data(), n);
}

void Loaded::set_all_outputs(size_t n) {
  std::vector<int32_t> rows;
  for (size_t i = 0; i < n; ++i) rows.push_back(static_cast<int32_t>(i));
  model_->inputs().set_outputs(rows);
}

std::vector<float> Loaded::forward(std::span<const Part> parts) {
  model_->begin_step();
  size_t n = 0;
  for (const Part& part : parts) {
    model_->add(*part.session, part.ids);
    n += part.ids.size();
  }
  set_all_outputs(n);
  model_->inputs().upload();
  model_->forward();
  model_->head();
  wait();
  return read(model_->logits(), static_cast<int64_t>(n) * n_vocab());
}

void Loaded::commit(std::span<const Part> parts, std::span<const int> kept) {
  bool partial = false;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int n = parts[i].session->n_pending();
    if (kept[i] == 0 || kept[i] == n) continue;
    model_->inputs().set_kept(static_cast<int>(i), kept[i]);
    partial = true;
  }
  if (partial) {
    model_->inputs().upload();
    model_->commit();
    wait();
  }
  for (size_t i = 0; i < parts.size(); ++i) parts[i].session->commit(kept[i]);
}

std::vector<float> Loaded::step(SessionState& session, std::span<const int32_t> ids) {
  const Part part{&session, {ids.begin(), ids.end()}};
  std::vector<float> logits = forward({&part, 1});
  session.commit(static_cast<int>(ids.size()));
  return logits;
}

std::vector<float> Loaded::run(SessionState& session, std::span<const int32_t> ids, int piece) {
  return run(session, ids, piece, nullptr);
}

std::vector<float> Loaded::run(SessionState& session, std::span<const int32_t> ids, int piece,
                               std::vector<float>* residual) {
  std::vector<float> logits;
  for (size_t at = 0; at < ids.size(); at += static_cast<size_t>(piece)) {
    const auto n = std::min(static_cast<size_t>(piece), ids.size() - at);
    const std::vector<float> part = step(session, ids.subspan(at, n));
    logits.insert(logits.end(), part.begin(), part.end());
    if (residual) {
      const std::vector<float> rows =
          read(model_->residual(), static_cast<int64_t>(n) * residual_width());
      residual->insert(residual->end(), rows.begin(), rows.end());
    }
  }
  return logits;
}

std::vector<float> Loaded::run_draft(SessionState& session, std::span<const int32_t> ids, int piece,
                                     std::vector<float>& residual) {
  const auto width = static_cast<size_t>(residual_width());
  EXPECT_GE(residual.size(), ids.size() * width);
  std::vector<float> logits;
  for (size_t at = 0; at < ids.size(); at += static_cast<size_t>(piece)) {
    const auto n = std::min(static_cast<size_t>(piece), ids.size() - at);
    const std::span<float> cells = std::span(residual).subspan(at * width, n * width);
    model_->copies().write(stream(), model_->residual().data(), std::as_bytes(cells));
    model_->begin_step();
    model_->add(session, ids.subspan(at, n));
    set_all_outputs(n);
    model_->inputs().upload();
    model_->draft();
    model_->draft_head();
    wait();
    session.commit(static_cast<int>(n));
    const std::vector<float> out = read(model_->logits(), static_cast<int64_t>(n) * n_vocab());
    logits.insert(logits.end(), out.begin(), out.end());
    model_->copies().read(stream(), model_->residual().data(), cells);
  }
  residual.resize(ids.size() * width);
  return logits;
}

}  // namespace strata::model::testing
