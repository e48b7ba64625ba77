#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "strata/gguf/model.h"
#include "strata/text/vocab.h"

namespace strata::testing {

// A byte as a character of the GPT-2 byte alphabet, UTF-8.
inline std::string byte_text(int wanted) {
  int next = 0x100;
  for (int byte = 0;; ++byte) {
    const bool itself =
        (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const int code_point = itself ? byte : next++;
    if (byte != wanted) continue;
    if (code_point < 0x80) return {static_cast<char>(code_point)};
    return {static_cast<char>(0xC0 + code_point / 64), static_cast<char>(0x80 + code_point % 64)};
  }
}

inline std::string byte_text(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += byte_text(static_cast<unsigned char>(byte));
  return text;
}

// 256 tokens, id = byte, and no merges.
inline text::VocabData byte_vocab(std::string_view pre = "qwen35") {
  text::VocabData data;
  data.pre = pre;
  for (int byte = 0; byte < 256; ++byte) data.tokens.push_back(byte_text(byte));
  data.types.assign(256, 1);
  return data;
}

inline void add_token(text::VocabData& data, std::string token, text::TokenType type) {
  data.tokens.push_back(std::move(token));
  data.types.push_back(static_cast<int32_t>(type));
}

// Adds the merge and its token, both given as bytes.
inline void add_merge(text::VocabData& data, std::string_view left, std::string_view right) {
  data.merges.push_back(byte_text(left) + " " + byte_text(right));
  add_token(data, byte_text(left) + byte_text(right), text::TokenType::kNormal);
}

// The vocabulary of the demo model.
inline text::VocabData demo_vocab() {
  const auto model = gguf::Model::open(STRATA_SOURCE_DIR "/models/strata-demo.gguf");
  return text::read_vocab(model.metadata());
}

}  // namespace strata::testing
