#include "strata/text/vocab.h"

#include <array>
#include <bit>
#include <functional>

#include "strata/base/error.h"
#include "strata/base/format.h"

namespace strata::text {
namespace {

constexpr size_t kMaxTokens = size_t{1} << 28;
constexpr size_t kAlphabet = 256 + 68;  // code points that may stand for a byte

// GPT-2's byte alphabet: printable Latin-1 characters stand for themselves, the 68 other bytes, in
// order, for U+0100 and on. So no token text holds a space or a control character.
bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct ByteAlphabet {
  std::array<int, kAlphabet> byte_of;  // -1: the code point stands for no byte
  std::array<std::string, 256> text_of;

  ByteAlphabet() {
    byte_of.fill(-1);
    int next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const int code_point = stands_for_itself(byte) ? byte : next++;
      byte_of[static_cast<size_t>(code_point)] = byte;
      std::string& text = text_of[static_cast<size_t>(byte)];
      if (code_point < 0x80) {
        text = {static_cast<char>(code_point)};
      } else {
        text = {static_cast<char>(0xC0 | code_point >> 6),
                static_cast<char>(0x80 | (code_point & 0x3F))};
      }
    }
  }

  // False if some character stands for no byte.
  bool decode(std::string_view text, std::string& bytes) const {
    bytes.clear();
    for (size_t i = 0; i < text.size(); ++i) {
      size_t code_point = static_cast<uint8_t>(text[i]);
      if (code_point >= 0x80) {
        // The alphabet ends at U+0143, so longer characters need no decoding.
        if (code_point < 0xC2 || code_point > 0xC5 || i + 1 == text.size()) return false;
        const auto second = static_cast<uint8_t>(text[++i]);
        if ((second & 0xC0) != 0x80) return false;
        code_point = (code_point & 0x1F) << 6 | (second & 0x3F);
      }
      if (code_point >= kAlphabet || byte_of[code_point] < 0) return false;
      bytes.push_back(static_cast<char>(byte_of[code_point]));
    }
    return true;
  }
};

TokenType checked_type(int32_t value, size_t id) {
  if (value >= static_cast<int32_t>(TokenType::kNormal) &&
      value <= static_cast<int32_t>(TokenType::kUnused)) {
    return static_cast<TokenType>(value);
  }
  throw Error(ErrorCode::kUnsupported, format("token {} has the unknown type {}", id, value));
}

}  // namespace

void StringTable::reserve(size_t n_strings, size_t n_bytes) {
  ends_.reserve(n_strings);
  bytes_.reserve(n_bytes);
}

void StringTable::add(std::string_view text) {
  bytes_.append(text);
  ends_.push_back(bytes_.size());
}

Vocab::Vocab(const VocabData& data) {
  const size_t n = data.tokens.size();
  if (n == 0 || n > kMaxTokens) {
    throw Error(ErrorCode::kCorruptFile, format("tokenizer with {} tokens", n));
  }
  if (data.types.size() != n) {
    throw Error(ErrorCode::kCorruptFile,
                format("tokenizer with {} tokens and {} token types", n, data.types.size()));
  }
  size_t n_bytes = 0;
  for (const std::string& token : data.tokens) n_bytes += token.size();
  texts_.reserve(n, n_bytes);
  pieces_.reserve(n, n_bytes);
  types_.reserve(n);

  const ByteAlphabet alphabet;
  std::string bytes;
  for (size_t i = 0; i < n; ++i) {
    const std::string& token = data.tokens[i];
    types_.push_back(checked_type(data.types[i], i));
    texts_.add(token);
    // Added tokens of some files are marked normal and are plain text all the same.
    const bool mapped = types_.back() == TokenType::kNormal && alphabet.decode(token, bytes);
    pieces_.add(mapped ? bytes : token);
  }
  index_texts();

  byte_ids_.reserve(256);
  for (size_t byte = 0; byte < 256; ++byte) {
    const std::optional<int32_t> id = find(alphabet.text_of[byte]);
    if (!id || type(*id) != TokenType::kNormal) {
      throw Error(ErrorCode::kCorruptFile, format("no token for the byte 0x{:02x}", byte));
    }
    byte_ids_.push_back(*id);
  }
}

void Vocab::index_texts() {
  slots_.assign(std::bit_ceil(2 * texts_.size()), -1);
  const size_t mask = slots_.size() - 1;
  for (int32_t id = 0; id < size(); ++id) {
    size_t slot = std::hash<std::string_view>()(text(id)) & mask;
    for (; slots_[slot] >= 0; slot = (slot + 1) & mask) {
      if (text(slots_[slot]) == text(id)) {
        throw Error(ErrorCode::kCorruptFile,
                    format("tokens {} and {} have the same text", slots_[slot], id));
      }
    }
    slots_[slot] = id;
  }
}

std::optional<int32_t> Vocab::find(std::string_view wanted) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = std::hash<std::string_view>()(wanted) & mask;
  for (; slots_[slot] >= 0; slot = (slot + 1) & mask) {
    if (text(slots_[slot]) == wanted) return slots_[slot];
  }
  return std::nullopt;
}

}  // namespace strata::text
