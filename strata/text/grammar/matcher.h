#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strata/text/grammar/compiled_grammar.h"
#include "strata/text/grammar/stack_pool.h"

namespace strata::text {

// How far a text has come in a grammar, byte by byte: a character may be cut anywhere. A value: a
// copy costs a few hundred bytes and goes its own way, for drafts and rollback. One thread at a
// time; copies are independent.
class Matcher {
 public:
  explicit Matcher(std::shared_ptr<const CompiledGrammar> grammar);

  // Goes on by `bytes` if some text of the grammar goes on so. Otherwise false, and nothing
  // changes.
  // Errors: kUnsupported if the text nests deeper than StackPool::kMaxDepth or is more ambiguous
  //         than kMaxConfigurations; nothing changes.
  bool accept(std::string_view bytes);

  // The text so far is whole.
  bool may_end() const;
  // Some byte may follow. Not so: the text is whole and the answer ends.
  bool may_continue() const;

  // The bytes that must follow, at most max_bytes: up to where the text may end or has a choice.
  std::string forced_bytes(size_t max_bytes) const;

  const CompiledGrammar& grammar() const { return *grammar_; }
  std::span<const Configuration> configurations() const { return configurations_; }
  const StackPool& stacks() const { return pool_; }

 private:
  enum class Outcome { kAccepted, kRefused, kTooMuch };
  Outcome try_accept(std::string_view bytes);
  // The only byte that may follow, as CompiledGrammar::only_byte().
  int only_byte() const;

  // Owners: every matcher of the grammar, the masks made for it, and whoever keeps it for later.
  std::shared_ptr<const CompiledGrammar> grammar_;
  StackPool pool_;
  std::vector<Configuration> configurations_;
  size_t compact_at_;  // stacks in the pool
};

}  // namespace strata::text
