#include "strata/engine/window.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <set>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/random_bits.h"
#include "strata/model/seeded_context.h"

namespace strata::engine {
namespace {

class ExpertCount final : public model::LayerObserver {
 public:
  void residual(int, View<const float>) override {}
  void selection(int, int, View<const int32_t>, View<const int32_t>) override {}
  void experts(int, View<const int32_t> id, View<const float>) override {
    n_experts_ += static_cast<double>(std::set<int32_t>(id.data(), id.data() + id.size()).size());
    ++n_layers_;
  }
  double mean() const { return n_layers_ > 0 ? n_experts_ / n_layers_ : 0; }

 private:
  double n_experts_ = 0;
  int n_layers_ = 0;
};

class Observing {
 public:
  Observing(model::Model& model, model::LayerObserver* observer) : model_(model) {
    model.set_observer(observer);
  }
  ~Observing() { model_.set_observer(nullptr); }
  Observing(const Observing&) = delete;
  Observing& operator=(const Observing&) = delete;

 private:
  model::Model& model_;
};

class Window {
 public:
  Window(model::Instance& instance, int64_t context, int rows, uint64_t seed, const Clock& clock)
      : instance_(instance),
        clock_(clock),
        seed_(seed),
        session_(instance.model().states(), context + rows) {
    model::seed_context(instance.model().states(), session_, tokens(static_cast<size_t>(context)),
                        seed);
  }

  std::vector<int32_t> tokens(size_t n) {
    std::vector<int32_t> ids(n);
    const auto n_vocab = static_cast<uint64_t>(instance_.model().info().n_vocab);
    for (int32_t& id : ids) id = static_cast<int32_t>(random_bits(seed_, n_drawn_++) % n_vocab);
    return ids;
  }

  // In ms; the step leaves no trace.
  double step(std::span<const int32_t> ids, model::LayerObserver* observer = nullptr) {
    model::Model& model = instance_.model();
    std::vector<int32_t> outputs(ids.size());
    std::iota(outputs.begin(), outputs.end(), 0);
    const Observing observing(model, observer);
    const Clock::TimePoint begun = clock_.now();
    model.begin_step();
    model.add(session_, ids);
    model.inputs().set_outputs(outputs);
    model.inputs().upload();
    model.forward();
    model.head();
    instance_.wait("window");
    const std::chrono::duration<double, std::milli> time = clock_.now() - begun;
    session_.commit(0);
    return time.count();
  }

 private:
  model::Instance& instance_;
  const Clock& clock_;
  uint64_t seed_, n_drawn_ = 0;
  model::SessionState session_;
};

}  // namespace

WindowTimes time_window(model::Instance& instance, int64_t context, int rows, int rounds,
                        uint64_t seed, const Clock& clock) {
  const model::ModelOptions& options = instance.options();
  STRATA_CHECK(rows > 0 && rounds > 0 && rows <= options.max_out && rows <= options.chunk);
  if (context < 1 || context > options.max_context - rows) {
    throw Error(ErrorCode::kInvalidArgument,
                format("a window of {} rows behind {} tokens; the context holds {}", rows, context,
                       options.max_context));
  }
  Window window(instance, context, rows, seed, clock);
  WindowTimes times;
  ExpertCount one_count, window_count;
  for (int i = 0; i < rounds; ++i) {
    const std::vector<int32_t> ids = window.tokens(static_cast<size_t>(rows));
    const std::span<const int32_t> all(ids);
    // Untimed, as the observer waits at every layer; these experts are in memory afterwards.
    window.step(all.first(1), &one_count);
    window.step(all, &window_count);
    times.one_ms.push_back(window.step(all.first(1)));
    times.window_ms.push_back(window.step(all));
  }
  times.one_experts = one_count.mean();
  times.window_experts = window_count.mean();
  return times;
}

DraftTimes time_drafts(model::Instance& instance, int rounds, const Clock& clock) {
  constexpr std::array<int32_t, 2> kIds = {1, 2}, kSources = {0, 1};
  model::Model& model = instance.model();
  STRATA_CHECK(model.draft_states() != nullptr && rounds > 0);
  // Their residuals are those that the passes start from.
  Window(instance, 1, 1, 1, clock).step(std::span(kIds).first(1));
  model::SessionState cells(*model.draft_states(), 2);
  const auto pass = [&](size_t n_rows) {
    const Clock::TimePoint begun = clock.now();
    const int32_t output = static_cast<int32_t>(n_rows) - 1;
    model.begin_step();
    model.add(cells, std::span(kIds).first(n_rows));
    model.inputs().set_sources(std::span(kSources).first(n_rows));
    model.inputs().set_outputs(std::span(&output, 1));
    model.inputs().upload();
    model.draft();
    model.draft_head();
    instance.wait("drafts");
    cells.commit(0);
    const std::chrono::duration<double, std::milli> time = clock.now() - begun;
    return time.count();
  };
  DraftTimes times;
  for (int i = 0; i < rounds; ++i) {
    const double first_ms = pass(2), next_ms = pass(1);
    times.first_ms = i == 0 ? first_ms : std::min(times.first_ms, first_ms);
    times.next_ms = i == 0 ? next_ms : std::min(times.next_ms, next_ms);
  }
  return times;
}

}  // namespace strata::engine
