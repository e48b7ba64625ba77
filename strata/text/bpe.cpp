#include "strata/text/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/gguf/escape.h"

namespace strata::text {
namespace {

uint64_t pair_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

// Ids of neighbours differ in few bits, so the key is mixed before its low bits choose the slot
// (the finaliser of MurmurHash3).
size_t mix(uint64_t key) {
  key = (key ^ key >> 33) * 0xff51afd7ed558ccdULL;
  key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53ULL;
  return static_cast<size_t>(key ^ key >> 33);
}

// The heap's least entry: the lowest rank, then the leftmost.
uint64_t heap_entry(uint32_t rank, int32_t left) {
  return static_cast<uint64_t>(rank) << 32 | static_cast<uint32_t>(left);
}

[[noreturn]] void bad_merge(size_t rank, std::string_view text, std::string_view why) {
  throw Error(ErrorCode::kCorruptFile,
              format("merge {} (\"{}\") {}", rank, gguf::escaped(text), why));
}

int32_t find_part(const Vocab& vocab, size_t rank, std::string_view merge, std::string_view part) {
  const std::optional<int32_t> id = vocab.find(part);
  if (!id) bad_merge(rank, merge, format("names no token: \"{}\"", gguf::escaped(part)));
  // Else ordinary text could become a special token, or one that stands for other bytes.
  if (vocab.type(*id) != TokenType::kNormal) {
    bad_merge(rank, merge, format("has the token {}, which is not a normal one", *id));
  }
  return *id;
}

}  // namespace

Bpe::Bpe(const Vocab& vocab, std::span<const std::string> merges) {
  if (merges.size() >= kNoMerge / 4) {
    throw Error(ErrorCode::kCorruptFile, format("tokenizer with {} merges", merges.size()));
  }
  table_.resize(std::bit_ceil(2 * merges.size() + 1));
  merged_.reserve(merges.size());
  const size_t mask = table_.size() - 1;
  std::string joined;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string_view merge = merges[rank];
    // The byte alphabet has no space, so exactly one stands in a good line.
    const size_t space = merge.find(' ');
    if (space == std::string_view::npos || space == 0 || space + 1 == merge.size() ||
        merge.find(' ', space + 1) != std::string_view::npos) {
      bad_merge(rank, merge, "is not two token texts with a space between");
    }
    joined.assign(merge.substr(0, space)).append(merge.substr(space + 1));
    const uint64_t pair = pair_key(find_part(vocab, rank, merge, merge.substr(0, space)),
                                   find_part(vocab, rank, merge, merge.substr(space + 1)));
    merged_.push_back(find_part(vocab, rank, merge, joined));
    size_t slot = mix(pair) & mask;
    for (; table_[slot].pair != kEmpty; slot = (slot + 1) & mask) {
      if (table_[slot].pair == pair) bad_merge(rank, merge, "comes twice");
    }
    table_[slot] = {pair, static_cast<uint32_t>(rank)};
  }
  for (int byte = 0; byte < 256; ++byte) {
    byte_ids_.push_back(vocab.byte_id(static_cast<uint8_t>(byte)));
  }
}

uint32_t Bpe::rank_of(int32_t left, int32_t right) const {
  const uint64_t pair = pair_key(left, right);
  const size_t mask = table_.size() - 1;
  size_t slot = mix(pair) & mask;
  while (table_[slot].pair != pair && table_[slot].pair != kEmpty) slot = (slot + 1) & mask;
  return table_[slot].rank;
}

uint32_t Bpe::pair_rank(const Scratch& scratch, int32_t left) const {
  const Scratch::Symbol& symbol = scratch.symbols[static_cast<size_t>(left)];
  if (symbol.next < 0) return kNoMerge;
  return rank_of(symbol.id, scratch.symbols[static_cast<size_t>(symbol.next)].id);
}

void Bpe::start(std::string_view piece, Scratch& scratch) const {
  const auto n = static_cast<int32_t>(piece.size());
  std::vector<Scratch::Symbol>& symbols = scratch.symbols;
  symbols.clear();
  symbols.reserve(piece.size());
  scratch.heap.clear();
  for (int32_t i = 0; i < n; ++i) {
    const auto byte = static_cast<uint8_t>(piece[static_cast<size_t>(i)]);
    symbols.push_back({byte_ids_[byte], i - 1, i + 1 < n ? i + 1 : -1, kNoMerge});
  }
  for (int32_t i = 0; i < n; ++i) {
    const uint32_t rank = pair_rank(scratch, i);
    symbols[static_cast<size_t>(i)].rank = rank;
    if (rank != kNoMerge) scratch.heap.push_back(heap_entry(rank, i));
  }
  std::make_heap(scratch.heap.begin(), scratch.heap.end(), std::greater<>());
}

void Bpe::encode(std::string_view piece, Scratch& scratch, std::vector<int32_t>& out) const {
  STRATA_CHECK(piece.size() < size_t{1} << 31);
  start(piece, scratch);
  std::vector<Scratch::Symbol>& symbols = scratch.symbols;
  std::vector<uint64_t>& heap = scratch.heap;
  const auto renew_pair = [&](int32_t left) {
    const uint32_t rank = pair_rank(scratch, left);
    symbols[static_cast<size_t>(left)].rank = rank;
    if (rank == kNoMerge) return;
    heap.push_back(heap_entry(rank, left));
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const uint64_t top = heap.back();
    heap.pop_back();
    const auto left = static_cast<int32_t>(top & UINT32_MAX);
    Scratch::Symbol& symbol = symbols[static_cast<size_t>(left)];
    // A symbol's pair changes when it or its neighbour is joined; older entries are then stale.
    if (symbol.rank != top >> 32) continue;
    Scratch::Symbol& right = symbols[static_cast<size_t>(symbol.next)];
    symbol.id = merged_[symbol.rank];
    symbol.next = right.next;
    right.rank = kNoMerge;
    if (symbol.next >= 0) symbols[static_cast<size_t>(symbol.next)].prev = left;
    renew_pair(left);
    if (symbol.prev >= 0) renew_pair(symbol.prev);
  }
  // The first symbol is never a right neighbour, so the chain starts there.
  for (int32_t i = symbols.empty() ? -1 : 0; i >= 0; i = symbols[static_cast<size_t>(i)].next) {
    out.push_back(symbols[static_cast<size_t>(i)].id);
  }
}

}  // namespace strata::text
