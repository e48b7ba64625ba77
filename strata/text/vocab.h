#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strata::gguf {
class Metadata;
}

namespace strata::text {

// What a file says about its tokenizer, not judged yet (`tokenizer.ggml.*`).
struct VocabData {
  std::string model = "gpt2";
  std::string pre;                  // name of the pre-tokenizer, e.g. "qwen35"
  std::vector<std::string> tokens;  // index = id; normal tokens in the GPT-2 byte alphabet
  std::vector<int32_t> types;       // TokenType, one a token
  std::vector<std::string> merges;  // "left right", best first
  std::optional<int32_t> eos_id;
  std::optional<int32_t> eot_id;
  std::optional<int32_t> eom_id;
  std::optional<int32_t> bos_id;
  std::optional<int32_t> padding_id;
  bool add_bos = false;
};

// The tokenizer of a file. Judges the types of the values, not what they say.
// Errors: kCorruptFile naming file and key if one is absent or of another type.
VocabData read_vocab(const gguf::Metadata& metadata);

// What lets one doubt a tokenizer that can be used: that text cannot become many of its tokens,
// because their merges are missing. Empty: nothing.
std::string vocab_warning(const VocabData& data);

enum class TokenType : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,      // special: steers the model, not shown to users
  kUserDefined = 4,  // special: found as a whole in a template, but is text to users
  kUnused = 5,
};

// Many strings in two allocations.
class StringTable {
 public:
  void reserve(size_t n_strings, size_t n_bytes);
  void add(std::string_view text);
  size_t size() const { return ends_.size(); }
  std::string_view operator[](size_t i) const {
    const uint64_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string bytes_;
  std::vector<uint64_t> ends_;
};

// The checked token list: id to text, bytes and type, and text to id. Immutable; any thread.
class Vocab {
 public:
  // Errors: kCorruptFile for an empty or oversized list, lists of different lengths, a duplicate
  // text, a byte without a token; kUnsupported for an unknown token type.
  explicit Vocab(const VocabData& data);

  int32_t size() const { return static_cast<int32_t>(types_.size()); }
  bool contains(int32_t id) const { return id >= 0 && id < size(); }

  // The text as it stands in the file. For these three the id is contained.
  std::string_view text(int32_t id) const { return texts_[static_cast<size_t>(id)]; }
  // The bytes that the token stands for in text.
  std::string_view piece(int32_t id) const { return pieces_[static_cast<size_t>(id)]; }
  TokenType type(int32_t id) const { return types_[static_cast<size_t>(id)]; }
  bool is_special(int32_t id) const {
    return type(id) == TokenType::kControl || type(id) == TokenType::kUserDefined;
  }

  // By the text as it stands in the file ("\u0120the" for " the"; "<think>" for a special token).
  std::optional<int32_t> find(std::string_view text) const;
  // The normal token of one byte.
  int32_t byte_id(uint8_t byte) const { return byte_ids_[byte]; }

 private:
  void index_texts();

  StringTable texts_;
  StringTable pieces_;
  std::vector<TokenType> types_;
  std::vector<int32_t> slots_;  // open addressing over texts_; -1 empty; size a power of two
  std::vector<int32_t> byte_ids_;
};

}  // namespace strata::text
