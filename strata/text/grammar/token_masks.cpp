#include "strata/text/grammar/token_masks.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "strata/base/check.h"
#include "strata/text/grammar/state_classes.h"
#include "strata/text/tokenizer.h"

namespace strata::text {
namespace {

// Some tenths of a second, once a grammar.
constexpr size_t kAlikeWork = 30'000'000;

}  // namespace

class TokenMasks::Spare {
 public:
  StateMask& hold(StateMask mask) {
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
                       std::shared_ptr<const TokenTrie> trie, size_t max_cache_bytes,
                       size_t max_work)
    : grammar_(std::move(grammar)),
      trie_(std::move(trie)),
      max_cache_bytes_(max_cache_bytes),
      max_work_(max_work),
      alike_(alike_states(*grammar_, trie_->max_depth(), kAlikeWork)),
      by_state_(grammar_->n_states()) {}

TokenMasks::~TokenMasks() = default;

bool TokenMasks::reserve(size_t n_bytes) {
  if (n_cache_bytes_ + n_bytes > max_cache_bytes_) return false;
  n_cache_bytes_ += n_bytes;
  return true;
}

StateMask& TokenMasks::mask_of(CompiledGrammar::State state, Spare& spare, WorkBudget& budget) {
  state = alike_[state];
  std::unique_ptr<StateMask>& kept = by_state_[state];
  if (kept != nullptr) {
    budget.spend(kept->work);
    return *kept;
  }
  StateMask made = MaskWalk(*grammar_, *trie_, budget).start_at(state);
  if (!reserve(made.n_bytes())) return spare.hold(std::move(made));
  kept = std::make_unique<StateMask>(std::move(made));
  return *kept;
}

StateMask& TokenMasks::mask_below(StateMask& above, CompiledGrammar::State state, Spare& spare,
                                  WorkBudget& budget) {
  state = alike_[state];
  const auto found = above.below.find(state);
  if (found != above.below.end()) {
    budget.spend(found->second->work);
    return *found->second;
  }
  StateMask made = MaskWalk(*grammar_, *trie_, budget).below_exits(above, state);
  if (spare.holds(above) || !reserve(made.n_bytes())) return spare.hold(std::move(made));
  return *(above.below[state] = std::make_unique<StateMask>(std::move(made)));
}

void TokenMasks::apply(const StateMask& mask, std::span<uint64_t> out, WorkBudget& budget) const {
  // Words are added several at a time.
  constexpr size_t kWordsAStep = 8;
  const auto add = [&](std::span<const uint64_t> bits) {
    budget.spend(bits.size() / kWordsAStep);
    for (size_t i = 0; i < bits.size(); ++i) out[i] |= bits[i];
  };
  if (mask.n_word_levels > 0) {
    add(trie_->bits(TokenTrie::Characters::kWords, mask.n_word_levels));
  }
  if (mask.n_text_levels > 0) {
    add(trie_->bits(TokenTrie::Characters::kText, mask.n_text_levels));
  }
  add(mask.bits);
  budget.spend(1 + mask.tokens.size());
  for (const uint32_t token : mask.tokens) out[token / 64] |= uint64_t{1} << (token % 64);
}

// What a configuration allows: its state by itself, then further down the stack as far as tokens
// reach.
void TokenMasks::apply_chain(const Matcher& matcher, Configuration it, Spare& spare,
                             WorkBudget& budget, std::span<uint64_t> out) {
  StateMask* mask = &mask_of(it.state, spare, budget);
  apply(*mask, out, budget);
  while (!mask->exits.empty() && it.stack != StackPool::kBottom) {
    mask = &mask_below(*mask, matcher.stacks().top(it.stack), spare, budget);
    apply(*mask, out, budget);
    it.stack = matcher.stacks().below(it.stack);
  }
}

bool TokenMasks::mask(const Matcher& matcher, std::span<uint64_t> mask) {
  STRATA_CHECK(&matcher.grammar() == grammar_.get());
  STRATA_CHECK(mask.size() == trie_->n_words());
  std::fill(mask.begin(), mask.end(), 0);
  WorkBudget budget(max_work_,
                    "the grammar is too ambiguous: it would take too long to find the tokens that "
                    "may come next");
  Spare spare;
  std::unordered_set<uint64_t> done;
  for (Configuration it : matcher.configurations()) {
    // A rule that may have ended goes on as the one below it as well.
    while (done.insert(uint64_t{it.state} << 32 | it.stack).second) {
      apply_chain(matcher, it, spare, budget, mask);
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
