#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "strata/engine/draft/source.h"

namespace strata::engine {

// Where the last kGram tokens of a text stood before.
class LookupIndex {
 public:
  static constexpr size_t kGram = 3;

  size_t size() const { return text_.size(); }
  void push(int32_t id);

  // What came the last time after the present end of the text, at most n tokens; what was guessed
  // counts as text where a repetition runs into the end. Empty if fewer than min_match tokens
  // agree.
  std::vector<int32_t> guess(size_t n, size_t min_match) const;

 private:
  static uint64_t key(const int32_t* gram);

  std::vector<int32_t> text_;
  std::unordered_map<uint64_t, size_t> last_;  // of each gram but the one at the end: where it ends
};

// Prompt lookup: code that is edited, texts that are quoted, loops. Free of cost but for the rows.
class LookupSource final : public DraftSource {
 public:
  explicit LookupSource(size_t min_match) : min_match_(min_match) {}
  void draft(std::span<DraftJob> jobs) override;
  bool costs() const override { return false; }

 private:
  size_t min_match_;
};

}  // namespace strata::engine
