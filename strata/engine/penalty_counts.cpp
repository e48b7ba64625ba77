#include "strata/engine/penalty_counts.h"

#include <algorithm>

namespace strata::engine {

PenaltyCounts::PenaltyCounts(const wire::Sampling& sampling, std::span<const int32_t> prompt)
    : answer_counts_(sampling.presence_penalty != 0 || sampling.frequency_penalty != 0),
      repeats_(sampling.repetition_penalty != 1 && sampling.repetition_window != 0),
      window_(sampling.repetition_window) {
  if (!repeats_) return;
  const size_t n = window_ < 0 ? prompt.size() : std::min<size_t>(prompt.size(), size_t(window_));
  for (const int32_t id : prompt.last(n)) {
    enter(id);
    if (window_ > 0) recent_.push_back(id);
  }
}

size_t PenaltyCounts::at(int32_t id) {
  const auto [found, is_new] = index_.try_emplace(id, counts_.size());
  if (is_new) {
    counts_.push_back({.id = id});
    in_window_.push_back(0);
  }
  return found->second;
}

void PenaltyCounts::enter(int32_t id) {
  const size_t i = at(id);
  ++in_window_[i];
  counts_[i].repeated = 1;
}

void PenaltyCounts::leave(int32_t id) {
  const size_t i = index_.at(id);
  if (--in_window_[i] > 0) return;
  counts_[i].repeated = 0;
  drop_unused(i);
}

void PenaltyCounts::drop_unused(size_t i) {
  if (counts_[i].n > 0 || in_window_[i] > 0) return;
  // The last one takes the place of the one that goes.
  const int32_t id = counts_[i].id;
  index_[counts_.back().id] = i;
  index_.erase(id);
  counts_[i] = counts_.back();
  in_window_[i] = in_window_.back();
  counts_.pop_back();
  in_window_.pop_back();
}

std::optional<int32_t> PenaltyCounts::push(int32_t id) {
  if (answer_counts_) ++counts_[at(id)].n;
  if (!repeats_) return std::nullopt;
  enter(id);
  if (window_ < 0) return std::nullopt;
  recent_.push_back(id);
  if (recent_.size() <= static_cast<size_t>(window_)) return std::nullopt;
  const int32_t left = recent_.front();
  recent_.pop_front();
  leave(left);
  return left;
}

void PenaltyCounts::take_back(int32_t id, std::optional<int32_t> left) {
  if (repeats_) {
    if (left) {
      enter(*left);
      recent_.push_front(*left);
    }
    if (window_ > 0) recent_.pop_back();
    leave(id);
  }
  if (!answer_counts_) return;
  const size_t i = index_.at(id);
  --counts_[i].n;
  drop_unused(i);
}

}  // namespace strata::engine
