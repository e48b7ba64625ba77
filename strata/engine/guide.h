#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strata/text/grammar/token_masks.h"
#include "strata/text/tokenizer.h"
#include "strata/wire/messages.h"

namespace strata::engine {

// What a request asks of the form of its answer: a grammar, and a bound of the reasoning in front
// of it. Follows the answer token by token. A value: a copy goes its own way, for drafts.
class Guide {
 public:
  // Asks for nothing.
  Guide() = default;
  // `masks`: of the request's grammar, null if it has none. The submit and the tokenizer outlive
  // it.
  Guide(const wire::Submit& submit, std::shared_ptr<text::TokenMasks> masks,
        const text::Tokenizer& tokenizer);

  // Not every token may come next.
  bool limits() const { return next_wrap_up_ != nullptr || follows_grammar(); }
  // Those that may, as text::TokenMasks::mask(). A token that must come is the only one. May be
  // none, see why_none(). Only if limits().
  void mask(std::span<uint64_t> words) const;
  // Why no token may come: the vocabulary lacks the bytes that must follow, or it would take too
  // long to find out. Empty: some may, or nothing limits them.
  std::string why_none() const;
  // The tokens that must come next, as far as they are known.
  std::vector<int32_t> forced() const;
  // The next token, which is none that ends the answer. False: it may not come, or the text has
  // become deeper or more ambiguous than a matcher follows.
  bool push(int32_t id);
  // Tokens of the reasoning so far, with the one that ends it.
  int32_t n_reasoning() const { return n_spent_; }
  // The answer is whole and nothing may follow.
  bool is_over() const;

 private:
  enum class Phase : uint8_t { kStart, kReasoning, kAnswer };
  bool follows_grammar() const { return matcher_.has_value() && phase_ == Phase::kAnswer; }
  bool push_bytes(int32_t id);
  void read(std::string_view bytes);
  void spend();

  const wire::Reasoning* reasoning_ = nullptr;
  const text::Tokenizer* tokenizer_ = nullptr;
  // Owners: all requests of this grammar, and Forms.
  std::shared_ptr<text::TokenMasks> masks_;
  std::optional<text::Matcher> matcher_;
  Phase phase_ = Phase::kAnswer;
  std::string tail_;     // of kStart all, of kReasoning what may become the tag that ends it
  int32_t n_spent_ = 0;  // tokens of the reasoning
  bool wraps_up_ = false;
  const int32_t* next_wrap_up_ = nullptr;
};

}  // namespace strata::engine
