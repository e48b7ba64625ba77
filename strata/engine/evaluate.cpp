#include "strata/engine/evaluate.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"

namespace strata::engine {
namespace {

double log_sum_exp(std::span<const float> logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - top);
  return top + std::log(sum);
}

void require_finite(std::span<const float> logits, size_t token) {
  if (std::ranges::all_of(logits, [](float x) { return std::isfinite(x); })) return;
  throw Error(ErrorCode::kInternal, format("a logit of token {} is not a number", token));
}

}  // namespace

// Lays the rows out, computes them, and then the head for as many at a time as its buffer holds.
void Evaluator::step(model::SessionState& session, std::span<const int32_t> ids, int draft,
                     size_t first, const OnRows& on_rows) {
  model::Model& model = instance_.model();
  device::Stream& stream = instance_.stream();
  const Pass body = draft == 0 ? &model::Model::forward : &model::Model::draft;
  const Pass head = draft == 0 ? &model::Model::head : &model::Model::draft_head;
  model.begin_step();
  model.add(session, ids);
  const size_t group = static_cast<size_t>(instance_.options().max_out);
  for (size_t at = 0; at < ids.size(); at += group) {
    const size_t n = std::min(group, ids.size() - at);
    std::vector<int32_t> rows(n);
    for (size_t i = 0; i < n; ++i) rows[i] = static_cast<int32_t>(at + i);
    model.inputs().set_outputs(rows);
    model.inputs().upload();
    if (at == 0) (model.*body)();
    (model.*head)();
    instance_.wait("evaluation");
    const View<float> logits = model.logits();
    const int64_t n_vocab = logits.extent(1);
    for (size_t i = 0; i < n; ++i) {
      const std::vector<float> row =
          model.copies().read(stream, logits.row(static_cast<int64_t>(i)), n_vocab);
      require_finite(row, first + at + i);
      on_rows(draft, first + at + i, View<const float>(row.data(), {1, n_vocab}));
    }
  }
  session.commit(static_cast<int>(ids.size()));
}

void Evaluator::run(std::span<const int32_t> ids, int n_drafts, const OnRows& on_rows) {
  model::Model& model = instance_.model();
  const int64_t n_context = instance_.options().max_context;
  if (ids.empty() || static_cast<int64_t>(ids.size()) > n_context) {
    throw Error(ErrorCode::kInvalidArgument,
                format("a sequence has {} tokens, the context holds {}", ids.size(), n_context));
  }
  const int32_t n_vocab = model.info().n_vocab;
  for (const int32_t id : ids) {
    if (id < 0 || id >= n_vocab) {
      throw Error(ErrorCode::kInvalidArgument,
                  format("token {} is outside the vocabulary of {}", id, n_vocab));
    }
  }
  STRATA_CHECK(n_drafts == 0 || (model.draft_states() && n_drafts <= instance_.options().slots));
  model::SessionState trunk(model.states(), n_context);
  std::vector<std::unique_ptr<model::SessionState>> drafts;
  for (int d = 0; d < n_drafts; ++d) {
    drafts.push_back(std::make_unique<model::SessionState>(*model.draft_states(), n_context));
  }
  const size_t chunk = static_cast<size_t>(instance_.options().chunk);
  for (size_t at = 0; at < ids.size(); at += chunk) {
    const size_t end = std::min(at + chunk, ids.size());
    step(trunk, ids.subspan(at, end - at), 0, at, on_rows);
    // The residual of the chunk's rows goes from step to step in place; the last rows drop out, as
    // they have no true token that far ahead.
    for (size_t d = 1; d <= drafts.size(); ++d) {
      if (ids.size() < d || std::min(end, ids.size() - d) <= at) break;
      const size_t n = std::min(end, ids.size() - d) - at;
      step(*drafts[d - 1], ids.subspan(at + d, n), static_cast<int>(d), at, on_rows);
    }
  }
}

void Difference::add(std::span<const float> ours, std::span<const float> reference) {
  STRATA_CHECK(ours.size() == reference.size() && !ours.empty());
  const double our_sum = log_sum_exp(ours), reference_sum = log_sum_exp(reference);
  double kl = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    const double a = ours[i], b = reference[i];
    max_abs = std::max(max_abs, std::abs(a - b));
    kl += std::exp(b - reference_sum) * ((b - reference_sum) - (a - our_sum));
  }
  sum_kl += kl;
  const auto best = [](std::span<const float> x) {
    return std::max_element(x.begin(), x.end()) - x.begin();
  };
  n_same_best += best(ours) == best(reference) ? 1 : 0;
  ++n_rows;
}

double negative_log_likelihood(std::span<const float> logits, int32_t id) {
  return log_sum_exp(logits) - static_cast<double>(logits[static_cast<size_t>(id)]);
}

}  // namespace strata::engine
