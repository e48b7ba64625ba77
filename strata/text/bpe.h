#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strata/text/vocab.h"

namespace strata::text {

// Byte-level byte-pair encoding of one piece: starts from the tokens of single bytes and joins, as
// long as any neighbours have a merge, the pair of lowest rank, the leftmost among equals.
// Time: n log n in the bytes of the piece, no recursion. Immutable; any thread.
// Source: Sennrich, Haddow and Birch 2016, arXiv:1508.07909; bytes as in GPT-2.
class Bpe {
 public:
  // Memory that an encode call reuses from piece to piece; belongs to one thread.
  struct Scratch {
    struct Symbol {
      int32_t id;
      int32_t prev;   // index, or -1
      int32_t next;   // index, or -1
      uint32_t rank;  // of the merge with the right neighbour, or kNoMerge
    };
    std::vector<Symbol> symbols;
    std::vector<uint64_t> heap;  // rank << 32 | index of the left symbol
  };

  // Errors: kCorruptFile for a merge that is not "left right", whose parts or result are no normal
  // tokens, or that comes twice.
  Bpe(const Vocab& vocab, std::span<const std::string> merges);

  // Appends the ids of `piece`, which has less than 2^31 bytes, to `out`.
  void encode(std::string_view piece, Scratch& scratch, std::vector<int32_t>& out) const;

 private:
  static constexpr uint32_t kNoMerge = UINT32_MAX;
  static constexpr uint64_t kEmpty = UINT64_MAX;
  struct Merge {
    uint64_t pair = kEmpty;  // left id << 32 | right id
    uint32_t rank = kNoMerge;
  };

  void start(std::string_view piece, Scratch& scratch) const;
  uint32_t rank_of(int32_t left, int32_t right) const;
  uint32_t pair_rank(const Scratch& scratch, int32_t left) const;

  std::vector<Merge> table_;     // open addressing; size a power of two, at most half full
  std::vector<int32_t> merged_;  // [rank] the token that a merge makes
  std::vector<int32_t> byte_ids_;
};

}  // namespace strata::text
