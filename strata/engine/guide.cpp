#include "strata/engine/guide.h"

#include <algorithm>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/text.h"

namespace strata::engine {

Guide::Guide(const wire::Submit& submit, std::shared_ptr<text::TokenMasks> masks,
             const text::Tokenizer& tokenizer)
    : tokenizer_(&tokenizer), masks_(std::move(masks)) {
  if (masks_ != nullptr) matcher_.emplace(masks_->shared_grammar());
  if (!submit.reasoning) return;
  reasoning_ = &*submit.reasoning;
  // A grammar leaves no room for reasoning but that which the prompt has begun.
  if (reasoning_->open) {
    phase_ = Phase::kReasoning;
    spend();
  } else if (!matcher_) {
    phase_ = Phase::kStart;
  }
}

// Of the reasoning: when the budget is used up, what wraps it up must come.
void Guide::spend() {
  if (wraps_up_ || reasoning_->budget < 0 || n_spent_ < reasoning_->budget) return;
  wraps_up_ = true;
  if (!reasoning_->wrap_up.empty()) next_wrap_up_ = reasoning_->wrap_up.data();
}

void Guide::mask(std::span<uint64_t> words) const {
  const std::vector<int32_t> ids = forced();
  if (ids.empty()) {
    try {
      masks_->mask(*matcher_, words);
    } catch (const Error&) {
      // A mask behind guesses may never be needed; who does need it asks why_none().
      std::ranges::fill(words, 0);
    }
    return;
  }
  std::ranges::fill(words, 0);
  words[static_cast<size_t>(ids[0]) / 64] |= uint64_t{1} << (ids[0] % 64);
}

std::string Guide::why_none() const {
  if (!limits() || !forced().empty()) return "";
  std::vector<uint64_t> words(masks_->trie().n_words());
  try {
    if (masks_->mask(*matcher_, words)) return "";
  } catch (const Error& e) {
    return e.message();
  }
  return "no token of this vocabulary can go on with the grammar from here";
}

std::vector<int32_t> Guide::forced() const {
  if (next_wrap_up_ != nullptr) {
    const int32_t* const end = reasoning_->wrap_up.data() + reasoning_->wrap_up.size();
    return {next_wrap_up_, end};
  }
  if (!follows_grammar()) return {};
  try {
    return text::forced_tokens(*matcher_, masks_->trie(), *tokenizer_);
  } catch (const Error&) {
    return {};  // too deep or too ambiguous to be followed so far at once
  }
}

bool Guide::push(int32_t id) {
  try {
    return push_bytes(id);
  } catch (const Error&) {
    return false;
  }
}

bool Guide::push_bytes(int32_t id) {
  if (tokenizer_ == nullptr) return true;
  const bool silent = !tokenizer_->contains(id) || tokenizer_->is_control(id);
  const std::string_view bytes = silent ? std::string_view() : tokenizer_->piece(id);
  if (next_wrap_up_ != nullptr) {
    if (id != *next_wrap_up_) return false;
    const int32_t* const end = reasoning_->wrap_up.data() + reasoning_->wrap_up.size();
    if (++next_wrap_up_ == end) next_wrap_up_ = nullptr;
  }
  if (follows_grammar()) return !silent && matcher_->accept(bytes);
  if (phase_ != Phase::kAnswer) read(bytes);
  return true;
}

void Guide::read(std::string_view bytes) {
  tail_ += bytes;
  if (phase_ == Phase::kStart) {
    const size_t first = tail_.find_first_not_of(kWhiteSpace);
    if (first == std::string::npos) return;
    const std::string_view begun = std::string_view(tail_).substr(first);
    if (begun.starts_with(reasoning_->begin)) {
      phase_ = Phase::kReasoning;
      tail_.erase(0, first + reasoning_->begin.size());
      n_spent_ = 0;
      return spend();
    }
    if (!reasoning_->begin.starts_with(begun)) phase_ = Phase::kAnswer;
    return;
  }
  ++n_spent_;
  const size_t at = tail_.find(reasoning_->close);
  if (at == std::string::npos) {
    const size_t kept = std::min(tail_.size(), reasoning_->close.size() - 1);
    tail_.erase(0, tail_.size() - kept);
    return spend();
  }
  phase_ = Phase::kAnswer;
  // What the last token holds behind the tag belongs to the answer, if it can.
  const std::string rest = tail_.substr(at + reasoning_->close.size());
  if (matcher_ && !rest.empty()) matcher_->accept(rest);
  tail_.clear();
}

bool Guide::is_over() const {
  return follows_grammar() && next_wrap_up_ == nullptr && !matcher_->may_continue();
}

}  // namespace strata::engine
