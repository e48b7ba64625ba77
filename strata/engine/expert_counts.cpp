#include "strata/engine/expert_counts.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

namespace strata::engine {

ExpertCounts::ExpertCounts(model::Instance& instance) : instance_(instance) {
  const model::ModelFacts& facts = instance.facts();
  n_layers_ = static_cast<int>(facts.layers.size());
  n_experts_ = facts.n_experts;
  counts_.resize(facts.layers.size() * static_cast<size_t>(n_experts_));
  instance.model().set_observer(this);
}

ExpertCounts::~ExpertCounts() { instance_.model().set_observer(nullptr); }

void ExpertCounts::experts(int layer, View<const int32_t> id, View<const float>) {
  int64_t* const counts = counts_.data() + int64_t{layer} * n_experts_;
  for (int64_t row = 0; row < id.extent(0); ++row) {
    for (int64_t i = 0; i < id.extent(1); ++i) ++counts[id.row(row)[i]];
  }
}

void ExpertCounts::add(std::span<const int32_t> ids) {
  model::Model& model = instance_.model();
  const int64_t n_context = instance_.options().max_context;
  const auto chunk = static_cast<size_t>(instance_.options().chunk);
  model::SessionState trunk(model.states(), n_context);
  std::unique_ptr<model::SessionState> draft;
  if (model.draft_states() != nullptr) {
    draft = std::make_unique<model::SessionState>(*model.draft_states(), n_context);
  }
  const auto step = [&](model::SessionState& session, std::span<const int32_t> rows,
                        void (model::Model::*compute)()) {
    model.begin_step();
    model.add(session, rows);
    model.inputs().set_outputs({});
    model.inputs().upload();
    (model.*compute)();
    instance_.wait("counting experts");
    session.commit(static_cast<int>(rows.size()));
  };
  for (size_t at = 0; at < ids.size(); at += chunk) {
    const size_t n = std::min(chunk, ids.size() - at);
    step(trunk, ids.subspan(at, n), &model::Model::forward);
    // Each row of the draft layer takes the next token; the last one has none.
    const size_t n_drafts = std::min(n, ids.size() - 1 - at);
    if (draft && n_drafts > 0) step(*draft, ids.subspan(at + 1, n_drafts), &model::Model::draft);
  }
}

memory::ExpertProfile ExpertCounts::profile() const {
  // Counts of a file have 32 bits; their ratios are what matters.
  int64_t most = 0;
  for (const int64_t count : counts_) most = std::max(most, count);
  const int64_t divisor = most / std::numeric_limits<int32_t>::max() + 1;
  std::vector<int32_t> counts;
  counts.reserve(counts_.size());
  for (const int64_t count : counts_) counts.push_back(static_cast<int32_t>(count / divisor));
  return memory::ExpertProfile::from_counts(n_layers_, n_experts_, std::move(counts));
}

}  // namespace strata::engine
