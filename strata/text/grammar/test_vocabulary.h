#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <unordered_set>
#include <vector>

#include "strata/text/grammar/code_point_ranges.h"

namespace strata::text::testing {

// A made-up vocabulary with the mix of a large byte-level BPE one: words with and without a blank
// in front, other scripts, code and punctuation, runs of blanks, pieces of characters. All 256
// single bytes come first; no two tokens are equal.
class SyntheticVocabulary {
 public:
  SyntheticVocabulary(size_t n_tokens, uint32_t seed) : random_(seed) {
    for (int byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)));
    for (size_t n = 2; n <= 128; n += n < 32 ? 1 : 16) {
      for (const char c : {' ', '\n', '\t', '-', '=', '*'}) add(std::string(n, c));
    }
    for (int i = 0; i < 1000; ++i) add(std::to_string(i));
    while (pieces_.size() < n_tokens) add(random_piece());
  }

  const std::vector<std::string>& pieces() const { return pieces_; }

 private:
  uint32_t below(uint32_t n) { return random_() % n; }

  void add(std::string piece) {
    if (known_.insert(piece).second) pieces_.push_back(std::move(piece));
  }

  std::string random_piece() {
    const uint32_t kind = below(100);
    if (kind < 62) return std::string(below(2), ' ') + word();
    if (kind < 86) return foreign();
    if (kind < 95) return code();
    if (kind < 99) return code() + (below(2) == 0 ? word() : "\n" + std::string(below(12), ' '));
    std::string cut = foreign();
    return below(2) == 0 ? cut.substr(0, cut.size() - 1) : cut.substr(1);
  }

  std::string word() {
    static const char* const kSyllables[] = {
        "in",  "er",  "re",  "th",  "at",   "on", "es",  "an", "ti", "ion", "st", "le", "com",
        "pro", "con", "ver", "ing", "ment", "al", "ent", "or", "ic", "de",  "un", "ly"};
    std::string out;
    for (uint32_t n = 1 + below(4); n > 0; --n) out += kSyllables[below(25)];
    if (below(4) == 0) out[0] = static_cast<char>(out[0] - 'a' + 'A');
    if (below(8) == 0) out += static_cast<char>('a' + below(26));
    return out;
  }

  std::string foreign() {
    static const CodePointRange kScripts[] = {{0x4E00, 0x9FFF}, {0x430, 0x44F}, {0xAC00, 0xD7A3},
                                              {0x3041, 0x3096}, {0x627, 0x64A}, {0xE0, 0xFF}};
    const CodePointRange& script = kScripts[below(6)];
    std::string out(below(5) == 0 ? 1 : 0, ' ');
    for (uint32_t n = 1 + below(5); n > 0; --n) {
      append_utf8(out, script.first + below(static_cast<uint32_t>(script.last - script.first) + 1));
    }
    return out;
  }

  std::string code() {
    static const std::string kMarks = "\"\"',,::{}[]()<>=+-*/\\.;_|&!?#@$%^~`  \n";
    std::string out;
    for (uint32_t n = 1 + below(4); n > 0; --n) {
      out += kMarks[below(static_cast<uint32_t>(kMarks.size()))];
    }
    return out;
  }

  std::mt19937 random_;
  std::vector<std::string> pieces_;
  std::unordered_set<std::string> known_;
};

}  // namespace strata::text::testing
