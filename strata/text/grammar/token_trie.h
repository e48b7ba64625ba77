#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "strata/text/grammar/code_point_ranges.h"

namespace strata::text {

class Tokenizer;

// The tokens of a vocabulary as tries, for masks. Tokens that are whole harmless characters lie in
// tries of their own, by length: where a grammar takes any such characters, as inside a JSON
// string, they are allowed all at once and never walked. Immutable; any thread.
class TokenTrie {
 public:
  static constexpr uint32_t kNoToken = UINT32_MAX;
  // Longer tokens are never allowed.
  static constexpr size_t kMaxTokenBytes = 4096;

  struct Node {
    uint32_t end;    // the nodes behind this one up to here are below it
    uint32_t token;  // that ends here: kNoToken, or the first, see same()
    uint16_t depth;  // bytes from the root, 1 for its children
    uint8_t byte;
  };

  // Sets of characters, each inside the next.
  enum class Characters : uint8_t {
    kWords,  // ASCII letters, digits, the blank, and all beyond ASCII
    kText,   // and ASCII punctuation, but for the quotation mark and the backslash
    kOther,  // anything, also parts of characters
  };
  // Most characters of a token in the tries of kWords and kText; the last: no bound.
  static constexpr int kLevels = 5;
  static constexpr int kMaxCharacters[kLevels] = {4, 8, 16, 32, INT32_MAX};

  struct Part {
    Characters characters;
    int level;       // index of kMaxCharacters; 0 for kOther
    uint32_t begin;  // nodes
    uint32_t end;
  };

  // `pieces`: the bytes of each token, index = id; an empty one is never allowed. `end_ids` end an
  // answer; they are no text, whatever their bytes. Takes about a second for 250,000 tokens.
  // Errors: kInvalidArgument for an end id outside the list.
  TokenTrie(std::span<const std::string_view> pieces, std::span<const int32_t> end_ids);

  int32_t n_vocab() const { return n_vocab_; }
  // Of a mask: 64 tokens each, token 0 in bit 0 of the first.
  size_t n_words() const { return (static_cast<size_t>(n_vocab_) + 63) / 64; }
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const Part> parts() const { return parts_; }
  uint32_t max_depth() const { return max_depth_; }
  std::span<const int32_t> end_ids() const { return end_ids_; }
  // The next token with the same bytes, or kNoToken.
  uint32_t same(uint32_t token) const { return same_[token]; }

  // All tokens of the first n_levels levels of kWords or kText as a mask; n_levels 1..kLevels.
  std::span<const uint64_t> bits(Characters characters, int n_levels) const;

  // Some token begins with these bytes and is longer.
  bool has_longer(std::string_view bytes) const;

 private:
  void add_part(Characters characters, int level, std::vector<uint32_t>& tokens,
                std::span<const std::string_view> pieces);
  void add_token(uint32_t token, std::string_view piece, size_t n_shared,
                 std::vector<uint32_t>& path);

  int32_t n_vocab_ = 0;
  uint32_t max_depth_ = 0;
  std::vector<Node> nodes_;
  std::vector<Part> parts_;
  std::vector<uint32_t> same_;
  std::vector<int32_t> end_ids_;
  std::vector<uint64_t> bits_;  // [kWords, kText][kLevels][n_words], each level with those before
};

// The ASCII characters of kWords or kText.
bool is_of(TokenTrie::Characters characters, uint8_t ascii);

// Of a tokenizer: its control tokens are no text, user-defined ones are; its stop ids end.
// `n_vocab`: as many as the model has logits; what the tokenizer lacks is never allowed.
TokenTrie make_token_trie(const Tokenizer& tokenizer, int32_t n_vocab);

}  // namespace strata::text
