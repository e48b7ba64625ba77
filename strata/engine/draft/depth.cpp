#include "strata/engine/draft/depth.h"

#include <algorithm>
#include <utility>

namespace strata::engine {
namespace {

// A guess counts half after about 34 more: an answer may turn from prose to code and back.
constexpr float kDecay = 0.98F;
constexpr double kPriorWeight = 2;
// Of a source that nothing is known of. Kind enough to be tried, gone after a few wrong guesses.
constexpr double kHope = 0.6;
constexpr double kPriorFall = 0.97;  // from depth to depth
// Of the time, for guesses that do not seem to pay. Three such limits have to be kept
// together: this, what a new session loses until it knows, and 3 % in all.
constexpr double kTrialShare = 0.015;
constexpr int kTrials = 6;
// Until a window of several rows was measured: what a row more costs, in rows. Far more on a card.
constexpr double kRowCost = 0.35;
// Of a deviation, what goes to the common factor and what to the kind of step that was measured;
// the first measurements of a kind are about it alone.
constexpr double kOfFactor = 1.0 / 16, kOfMean = 1.0 / 64;
constexpr int kNew = 4;
// What one measurement may be off, and the first one of a kind from what was expected.
constexpr double kMostOff = 1.5, kFirstMostOff = 3;

}  // namespace

void Acceptance::add(int n, int n_right) {
  for (int i = 0; i < std::min(n, kMaxGuesses) && i <= n_right; ++i) {
    const auto at = static_cast<size_t>(i);
    n_[at] = n_[at] * kDecay + 1;
    n_right_[at] = n_right_[at] * kDecay + (i < n_right ? 1.0F : 0.0F);
  }
}

double Acceptance::share(int depth, double prior) const {
  const auto at = static_cast<size_t>(std::min(depth, kMaxGuesses - 1));
  return (static_cast<double>(n_right_[at]) + kPriorWeight * prior) /
         (static_cast<double>(n_[at]) + kPriorWeight);
}

void StepCosts::blend(Mean& mean, double ms, double expected) {
  if (!(ms > 0)) return;
  const double wanted = mean.n > 0 ? factor_ * mean.ms : expected;
  // One measurement that was disturbed says nothing about the next.
  const double most = mean.n == 0 ? kFirstMostOff : kMostOff;
  const double ratio = wanted > 0 ? std::clamp(ms / wanted, 1 / most, most) : 1;
  if (mean.n == 0) mean.ms = (wanted > 0 ? wanted : ms) / factor_;
  ++mean.n;
  const bool is_new = mean.n <= kNew;
  if (!is_new) factor_ *= 1 + (ratio - 1) * kOfFactor;
  mean.ms *= 1 + (ratio - 1) * (is_new ? 1.0 / mean.n : kOfMean);
}

void StepCosts::add_step(int rows, double ms) {
  if (rows < 1) return;
  const double expected = factor_ * line(rows);
  if (static_cast<size_t>(rows) > steps_.size()) steps_.resize(static_cast<size_t>(rows));
  blend(steps_[static_cast<size_t>(rows) - 1], ms, expected);
}

void StepCosts::set_step(int rows, double ms) {
  if (static_cast<size_t>(rows) > steps_.size()) steps_.resize(static_cast<size_t>(rows));
  steps_[static_cast<size_t>(rows) - 1] = {.ms = ms, .n = kNew};
}

void StepCosts::set_drafts(double first_ms, double next_ms) {
  // Behind a step of answers the layer's weights are in no cache: the first real ones count more.
  first_draft_ = {.ms = first_ms, .n = 1};
  next_draft_ = {.ms = next_ms, .n = 1};
}

double StepCosts::at(int rows) const {
  double least = 0;
  for (size_t i = static_cast<size_t>(rows) - 1; i < steps_.size(); ++i) {
    if (steps_[i].n > 0 && (least == 0 || steps_[i].ms < least)) least = steps_[i].ms;
  }
  return steps_[static_cast<size_t>(rows) - 1].n > 0 ? least : 0;
}

double StepCosts::line(int rows) const {
  int before = 0, below = 0, above = 0;  // sizes that were measured
  for (int size = 1; size <= static_cast<int>(steps_.size()) && above == 0; ++size) {
    if (at(size) == 0) continue;
    if (size > rows) {
      above = size;
    } else {
      before = std::exchange(below, size);
    }
  }
  const auto usual = [](int n) { return 1 + kRowCost * (n - 1); };
  if (below == 0) return above == 0 ? 0 : at(above) * usual(rows) / usual(above);
  if (below == rows) return at(below);
  const int other = above > 0 ? above : before;
  const double slope =
      other > 0 ? (at(other) - at(below)) / (other - below) : at(below) * kRowCost / usual(below);
  return at(below) + slope * (rows - below);
}

double StepCosts::step(int rows) const { return factor_ * line(rows); }

double StepCosts::draft(int depth) const {
  if (depth == 0) return 0;
  const double next = next_draft_.n > 0 ? next_draft_.ms : first_draft_.ms;
  return factor_ * (first_draft_.ms + next * (depth - 1));
}

double DepthChoice::tokens(int n, const Experience& everywhere) const {
  double tokens = 1, chance = 1, hope = kHope;
  for (int depth = 0; depth < n; ++depth) {
    const double share = acceptance_.share(depth, everywhere.acceptance.share(depth, hope));
    chance *= share;
    tokens += chance;
    // What was never tried is nearly as good as what comes before it.
    hope = share * kPriorFall;
  }
  return tokens;
}

int DepthChoice::choose(const StepCosts& costs, Experience& everywhere, int most,
                        const Others& others, bool drafting) {
  if (most < 1 || !costs.known()) return std::max(most, 0);
  const auto cost = [&](int n) {
    return costs.step(others.rows + 1 + n) + (drafting ? costs.draft(n) : 0);
  };
  const auto rate = [&](int n) { return (others.tokens + tokens(n, everywhere)) / cost(n); };
  int best = 0;
  for (int n = 1; n <= most; ++n) {
    if (rate(n) > rate(best)) best = n;
  }
  if (best > 0) return best;
  // As if they all were wrong. Several at once: after a rest the first ones are blind.
  const double loss = cost(1) - cost(0);
  if (n_trials_ == 0 && everywhere.spent_ms + kTrials * loss <= kTrialShare * everywhere.time_ms) {
    n_trials_ = kTrials;
  }
  if (n_trials_ == 0) return 0;
  --n_trials_;
  everywhere.spent_ms += loss;
  return 1;
}

}  // namespace strata::engine
