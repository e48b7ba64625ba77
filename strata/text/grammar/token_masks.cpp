#include "strata/text/grammar/token_masks.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "strata/base/check.h"
#include "strata/text/tokenizer.h"

namespace strata::text {

class TokenMasks::Spare {
 public:
  const StateMask& hold(StateMask mask) {
    return *held_.emplace_back(std::make_unique<StateMask>(std::move(mask)));
  }
  bool holds(const StateMask& mask) const {
    return std::any_of(held_.begin(), held_.end(),
                       [&](const auto& held) { return held.get() == &mask; });
  }

 private:
  std::vector<std::unique_ptr<StateMask>> held_;
};

TokenMasks::TokenMasks(std::shared_ptr<const CompiledGrammar> grammar,
                       std::shared_ptr<const TokenTrie> trie, size_t max_cache_bytes)
    : grammar_(std::move(grammar)),
      trie_(std::move(trie)),
      max_cache_bytes_(max_cache_bytes),
      by_state_(grammar_->n_states()) {}

TokenMasks::~TokenMasks() {
  for (const auto& slot : by_state_) delete slot.load(std::memory_order_acquire);
}

bool TokenMasks::reserve(size_t n_bytes) const {
  if (n_cache_bytes_.fetch_add(n_bytes, std::memory_order_relaxed) + n_bytes <= max_cache_bytes_) {
    return true;
  }
  n_cache_bytes_.fetch_sub(n_bytes, std::memory_order_relaxed);
  return false;
}

const StateMask& TokenMasks::mask_of(CompiledGrammar::State state, Spare& spare) const {
  std::atomic<const StateMask*>& slot = by_state_[state];
  if (const StateMask* known = slot.load(std::memory_order_acquire)) return *known;
  StateMask made = MaskWalk(*grammar_, *trie_).start_at(state);
  const size_t n_bytes = made.n_bytes();
  if (!reserve(n_bytes)) return spare.hold(std::move(made));
  auto kept = std::make_unique<StateMask>(std::move(made));
  const StateMask* first = nullptr;
  if (slot.compare_exchange_strong(first, kept.get(), std::memory_order_acq_rel)) {
    return *kept.release();
  }
  n_cache_bytes_.fetch_sub(n_bytes, std::memory_order_relaxed);
  return *first;  // another thread was faster
}

const StateMask& TokenMasks::mask_below(const StateMask& above, CompiledGrammar::State state,
                                        Spare& spare) const {
  {
    const std::shared_lock lock(below_mutex_);
    const auto found = above.below.find(state);
    if (found != above.below.end()) return *found->second;
  }
  StateMask made = MaskWalk(*grammar_, *trie_).below_exits(above, state);
  const size_t n_bytes = made.n_bytes();
  if (spare.holds(above) || !reserve(n_bytes)) return spare.hold(std::move(made));
  const std::unique_lock lock(below_mutex_);
  const auto [entry, is_new] = above.below.try_emplace(state);
  if (is_new) {
    entry->second = std::make_unique<StateMask>(std::move(made));
  } else {
    n_cache_bytes_.fetch_sub(n_bytes, std::memory_order_relaxed);
  }
  return *entry->second;
}

void TokenMasks::apply(const StateMask& mask, std::span<uint64_t> out) const {
  const auto add = [&](std::span<const uint64_t> bits) {
    for (size_t i = 0; i < bits.size(); ++i) out[i] |= bits[i];
  };
  if (mask.n_word_levels > 0) {
    add(trie_->bits(TokenTrie::Characters::kWords, mask.n_word_levels));
  }
  if (mask.n_text_levels > 0) {
    add(trie_->bits(TokenTrie::Characters::kText, mask.n_text_levels));
  }
  add(mask.bits);
  for (const uint32_t token : mask.tokens) out[token / 64] |= uint64_t{1} << (token % 64);
}

// What a configuration allows: its state by itself, then further down the stack as far as tokens
// reach.
void TokenMasks::apply_chain(const Matcher& matcher, Configuration it, Spare& spare,
                             std::span<uint64_t> out) const {
  const StateMask* mask = &mask_of(it.state, spare);
  apply(*mask, out);
  while (!mask->exits.empty() && it.stack != StackPool::kBottom) {
    mask = &mask_below(*mask, matcher.stacks().top(it.stack), spare);
    apply(*mask, out);
    it.stack = matcher.stacks().below(it.stack);
  }
}

bool TokenMasks::mask(const Matcher& matcher, std::span<uint64_t> mask) const {
  STRATA_CHECK(&matcher.grammar() == grammar_.get());
  STRATA_CHECK(mask.size() == trie_->n_words());
  std::fill(mask.begin(), mask.end(), 0);
  Spare spare;
  std::vector<Configuration> done;
  for (Configuration it : matcher.configurations()) {
    // A rule that may have ended goes on as the one below it as well.
    while (std::find(done.begin(), done.end(), it) == done.end()) {
      done.push_back(it);
      apply_chain(matcher, it, spare, mask);
      if (it.stack == StackPool::kBottom || !grammar_->is_final(it.state)) break;
      it = {matcher.stacks().top(it.stack), matcher.stacks().below(it.stack)};
    }
  }
  if (matcher.may_end()) {
    for (const int32_t id : trie_->end_ids()) {
      mask[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64);
    }
  }
  return std::any_of(mask.begin(), mask.end(), [](uint64_t word) { return word != 0; });
}

std::vector<int32_t> forced_tokens(const Matcher& matcher, const TokenTrie& trie,
                                   const Tokenizer& tokenizer, size_t max_bytes) {
  const std::string forced = matcher.forced_bytes(max_bytes);
  if (forced.empty()) return {};
  Matcher behind(matcher);
  STRATA_CHECK(behind.accept(forced));
  // Tags of calls are tokens of their own, which the model knows them by; what steers it is none.
  std::vector<int32_t> ids = tokenizer.encode(forced, SpecialParsing::kAllow);
  const auto steers = [&](int32_t id) { return tokenizer.is_control(id); };
  if (std::any_of(ids.begin(), ids.end(), steers)) {
    ids = tokenizer.encode(forced, SpecialParsing::kNone);
  }
  if (!behind.may_continue()) return ids;
  std::string_view rest = forced;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (trie.has_longer(rest)) {
      ids.resize(i);
      break;
    }
    rest.remove_prefix(tokenizer.piece(ids[i]).size());
  }
  return ids;
}

}  // namespace strata::text
