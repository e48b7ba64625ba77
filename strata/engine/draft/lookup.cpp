#include "strata/engine/draft/lookup.h"

#include "strata/engine/request.h"

namespace strata::engine {

// Exact for ids below 2^21; beyond it only a wrong guess can come of it, since guess() compares.
uint64_t LookupIndex::key(const int32_t* gram) {
  uint64_t key = 0;
  for (size_t i = 0; i < kGram; ++i) key = (key << 21) ^ static_cast<uint64_t>(gram[i]);
  return key;
}

void LookupIndex::push(int32_t id) {
  if (text_.size() >= kGram) last_[key(&text_[text_.size() - kGram])] = text_.size();
  text_.push_back(id);
}

std::vector<int32_t> LookupIndex::guess(size_t n, size_t min_match) const {
  if (text_.size() <= kGram) return {};
  const auto found = last_.find(key(&text_[text_.size() - kGram]));
  if (found == last_.end()) return {};
  const size_t end = found->second;
  size_t match = 0;
  while (match < min_match && match < end &&
         text_[end - 1 - match] == text_[text_.size() - 1 - match]) {
    ++match;
  }
  if (match < min_match) return {};
  std::vector<int32_t> guesses;
  for (size_t i = end; guesses.size() < n; ++i) {
    guesses.push_back(i < text_.size() ? text_[i] : guesses[i - text_.size()]);
  }
  return guesses;
}

void LookupSource::draft(std::span<DraftJob> jobs) {
  for (DraftJob& job : jobs) {
    if (job.n_wanted == 0) continue;
    Request& request = *job.request;
    LookupIndex& index = request.drafting.lookup;
    const std::vector<int32_t>& prompt = request.submit.ids;
    while (index.size() < prompt.size()) index.push(prompt[index.size()]);
    while (index.size() < prompt.size() + request.answer.size()) {
      index.push(request.answer[index.size() - prompt.size()]);
    }
    job.guesses = index.guess(static_cast<size_t>(job.n_wanted), min_match_);
  }
}

}  // namespace strata::engine
