#include "strata/text/grammar/matcher.h"

#include <algorithm>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"

namespace strata::text {
namespace {

// The pool is cleared of unused stacks at twice its used size, but not below this: copies stay
// small and clearing stays rare.
constexpr size_t kLeastCompaction = 64;
// Bytes between two clearings of a long text.
constexpr size_t kPiece = 256;

}  // namespace

Matcher::Matcher(std::shared_ptr<const CompiledGrammar> grammar)
    : grammar_(std::move(grammar)), compact_at_(kLeastCompaction) {
  configurations_.push_back({grammar_->start(), StackPool::kBottom});
}

bool Matcher::accept(std::string_view bytes) {
  Outcome outcome = Outcome::kAccepted;
  if (bytes.size() <= kPiece) {
    outcome = try_accept(bytes);
  } else {
    Matcher next(*this);
    for (size_t at = 0; at < bytes.size() && outcome == Outcome::kAccepted; at += kPiece) {
      outcome = next.try_accept(bytes.substr(at, kPiece));
    }
    if (outcome == Outcome::kAccepted) *this = std::move(next);
  }
  if (outcome == Outcome::kTooMuch) {
    throw Error(ErrorCode::kUnsupported,
                format("the text nests deeper than {} rules or can be read in more than {} ways",
                       StackPool::kMaxDepth, kMaxConfigurations));
  }
  return outcome == Outcome::kAccepted;
}

Matcher::Outcome Matcher::try_accept(std::string_view bytes) {
  const size_t n_stacks = pool_.size();
  std::vector<Configuration> now = configurations_;
  std::vector<Configuration> next;
  ByteStep step;
  Outcome outcome = Outcome::kAccepted;
  for (const char byte : bytes) {
    next.clear();
    step.begin(0);
    for (const Configuration& it : now) {
      if (!step.add(*grammar_, pool_, it, static_cast<uint8_t>(byte), next)) {
        outcome = Outcome::kTooMuch;
        break;
      }
    }
    if (outcome == Outcome::kAccepted && next.empty()) outcome = Outcome::kRefused;
    if (outcome != Outcome::kAccepted) {
      pool_.truncate(n_stacks);
      return outcome;
    }
    now.swap(next);
  }
  configurations_.swap(now);
  if (pool_.size() >= compact_at_) {
    pool_.keep(configurations_);
    compact_at_ = std::max(kLeastCompaction, 2 * pool_.size());
  }
  return outcome;
}

bool Matcher::may_end() const {
  for (Configuration it : configurations_) {
    while (grammar_->is_final(it.state)) {
      if (it.stack == StackPool::kBottom) return true;
      it = {pool_.top(it.stack), pool_.below(it.stack)};
    }
  }
  return false;
}

int Matcher::only_byte() const {
  int only = CompiledGrammar::kNoByte;
  for (Configuration it : configurations_) {
    while (true) {
      const int byte = grammar_->only_byte(it.state);
      if (byte == CompiledGrammar::kManyBytes) return byte;
      if (byte != CompiledGrammar::kNoByte) {
        if (only != CompiledGrammar::kNoByte && only != byte) return CompiledGrammar::kManyBytes;
        only = byte;
      }
      if (it.stack == StackPool::kBottom || !grammar_->is_final(it.state)) break;
      it = {pool_.top(it.stack), pool_.below(it.stack)};
    }
  }
  return only;
}

bool Matcher::may_continue() const { return only_byte() != CompiledGrammar::kNoByte; }

std::string Matcher::forced_bytes(size_t max_bytes) const {
  std::string bytes;
  if (max_bytes == 0) return bytes;
  Matcher next(*this);
  while (bytes.size() < max_bytes && !next.may_end()) {
    const int byte = next.only_byte();
    if (byte < 0 || byte > 255) break;
    const char text = static_cast<char>(byte);
    if (next.try_accept({&text, 1}) != Outcome::kAccepted) break;
    bytes += text;
  }
  return bytes;
}

}  // namespace strata::text
