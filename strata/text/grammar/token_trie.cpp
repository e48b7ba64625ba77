#include "strata/text/grammar/token_trie.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/tokenizer.h"
#include "strata/text/utf8.h"

namespace strata::text {
namespace {

using Characters = TokenTrie::Characters;

constexpr size_t kSets = 2;  // kWords, kText

// Which trie a token goes to: all of kOther go to level 0.
struct Place {
  Characters characters = Characters::kWords;
  int level = 0;
};

Place place_of(std::string_view piece) {
  Place place;
  int n_characters = 0;
  for (size_t at = 0; at < piece.size(); ++n_characters) {
    const Utf8Step step = utf8_step(piece.substr(at));
    const auto byte = static_cast<uint8_t>(piece[at]);
    if (step.status != Utf8Status::kValid) return {Characters::kOther, 0};
    at += step.length;
    if (step.length > 1 || is_of(Characters::kWords, byte)) continue;
    if (!is_of(Characters::kText, byte)) return {Characters::kOther, 0};
    place.characters = Characters::kText;
  }
  while (n_characters > TokenTrie::kMaxCharacters[place.level]) ++place.level;
  return place;
}

size_t shared_prefix(std::string_view a, std::string_view b) {
  const size_t n = std::min(a.size(), b.size());
  size_t i = 0;
  while (i < n && a[i] == b[i]) ++i;
  return i;
}

}  // namespace

bool is_of(Characters characters, uint8_t ascii) {
  if (ascii == ' ' || (ascii >= '0' && ascii <= '9') || (ascii >= 'A' && ascii <= 'Z') ||
      (ascii >= 'a' && ascii <= 'z')) {
    return true;
  }
  return characters == Characters::kText && ascii > ' ' && ascii < 0x7F && ascii != '"' &&
         ascii != '\\';
}

TokenTrie::TokenTrie(std::span<const std::string_view> pieces, std::span<const int32_t> end_ids)
    : n_vocab_(static_cast<int32_t>(pieces.size())), end_ids_(end_ids.begin(), end_ids.end()) {
  STRATA_CHECK(pieces.size() < INT32_MAX);
  std::vector<uint8_t> ends(pieces.size(), 0);
  for (const int32_t id : end_ids_) {
    if (id < 0 || id >= n_vocab_) {
      throw Error(ErrorCode::kInvalidArgument,
                  format("end token {} is not in the vocabulary of {} tokens", id, n_vocab_));
    }
    ends[static_cast<size_t>(id)] = 1;
  }
  same_.assign(pieces.size(), kNoToken);
  std::array<std::array<std::vector<uint32_t>, kLevels>, kSets + 1> tokens;
  for (uint32_t id = 0; id < pieces.size(); ++id) {
    if (ends[id] || pieces[id].empty() || pieces[id].size() > kMaxTokenBytes) continue;
    const Place place = place_of(pieces[id]);
    tokens[static_cast<size_t>(place.characters)][static_cast<size_t>(place.level)].push_back(id);
  }
  bits_.assign(kSets * kLevels * n_words(), 0);
  for (size_t set = 0; set <= kSets; ++set) {
    for (size_t level = 0; level < kLevels; ++level) {
      add_part(static_cast<Characters>(set), static_cast<int>(level), tokens[set][level], pieces);
    }
  }
}

void TokenTrie::add_part(Characters characters, int level, std::vector<uint32_t>& tokens,
                         std::span<const std::string_view> pieces) {
  if (characters != Characters::kOther) {
    for (auto n = static_cast<size_t>(level); n < kLevels; ++n) {
      uint64_t* words = bits_.data() + (static_cast<size_t>(characters) * kLevels + n) * n_words();
      for (const uint32_t id : tokens) words[id / 64] |= uint64_t{1} << (id % 64);
    }
  }
  if (tokens.empty()) return;
  std::stable_sort(tokens.begin(), tokens.end(),
                   [&](uint32_t a, uint32_t b) { return pieces[a] < pieces[b]; });
  const auto begin = static_cast<uint32_t>(nodes_.size());
  std::vector<uint32_t> path;  // the open nodes, outermost first
  std::string_view last;
  for (const uint32_t id : tokens) {
    add_token(id, pieces[id], shared_prefix(last, pieces[id]), path);
    last = pieces[id];
  }
  for (const uint32_t node : path) nodes_[node].end = static_cast<uint32_t>(nodes_.size());
  parts_.push_back({characters, level, begin, static_cast<uint32_t>(nodes_.size())});
}

void TokenTrie::add_token(uint32_t token, std::string_view piece, size_t n_shared,
                          std::vector<uint32_t>& path) {
  for (; path.size() > n_shared; path.pop_back()) {
    nodes_[path.back()].end = static_cast<uint32_t>(nodes_.size());
  }
  for (size_t i = n_shared; i < piece.size(); ++i) {
    path.push_back(static_cast<uint32_t>(nodes_.size()));
    nodes_.push_back({0, kNoToken, static_cast<uint16_t>(i + 1), static_cast<uint8_t>(piece[i])});
  }
  max_depth_ = std::max(max_depth_, static_cast<uint32_t>(piece.size()));
  uint32_t& slot = nodes_[path.back()].token;
  same_[token] = slot;
  slot = token;
}

std::span<const uint64_t> TokenTrie::bits(Characters characters, int n_levels) const {
  STRATA_CHECK(characters != Characters::kOther && n_levels > 0 && n_levels <= kLevels);
  const size_t row = static_cast<size_t>(characters) * kLevels + static_cast<size_t>(n_levels) - 1;
  return std::span(bits_).subspan(row * n_words(), n_words());
}

bool TokenTrie::has_longer(std::string_view bytes) const {
  for (const Part& part : parts_) {
    if (bytes.empty()) return true;
    uint32_t at = part.begin;
    uint32_t end = part.end;
    size_t n = 0;
    while (at < end && n < bytes.size()) {
      if (nodes_[at].byte == static_cast<uint8_t>(bytes[n])) {
        end = nodes_[at].end;
        ++at;
        ++n;
      } else {
        at = nodes_[at].end;
      }
    }
    if (n == bytes.size() && at < end) return true;
  }
  return false;
}

TokenTrie make_token_trie(const Tokenizer& tokenizer, int32_t n_vocab) {
  std::vector<std::string_view> pieces(static_cast<size_t>(std::max(n_vocab, 0)));
  for (int32_t id = 0; id < std::min(n_vocab, tokenizer.n_vocab()); ++id) {
    if (!tokenizer.is_control(id)) pieces[static_cast<size_t>(id)] = tokenizer.piece(id);
  }
  std::vector<int32_t> end_ids;
  for (const int32_t id : tokenizer.stop_ids()) {
    if (id < n_vocab) end_ids.push_back(id);
  }
  return TokenTrie(pieces, end_ids);
}

}  // namespace strata::text
