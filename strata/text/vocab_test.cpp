#include "strata/text/vocab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "strata/base/error.h"
#include "strata/gguf/metadata.h"
#include "tests/support/vocab.h"

namespace strata::text {
namespace {

using strata::testing::add_token;
using strata::testing::byte_vocab;
using ::testing::HasSubstr;

void expect_error(const VocabData& data, ErrorCode code, const std::string& what) {
  try {
    const Vocab vocab(data);
    FAIL() << "no error: " << what;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(what));
  }
}

TEST(Vocab, pieces_are_the_bytes_of_normal_tokens) {
  VocabData data = byte_vocab();
  add_token(data, "\u0120the", TokenType::kNormal);           // " the"
  add_token(data, "\u00E4\u00B8\u0143", TokenType::kNormal);  // U+4E2D in bytes E4 B8 AD
  add_token(data, "<|x y|>", TokenType::kControl);
  add_token(data, "\u0120raw", TokenType::kUserDefined);  // special: not in the alphabet
  add_token(data, "plain text", TokenType::kNormal);      // a space: not in the alphabet
  add_token(data, "[PAD261]", TokenType::kUnused);
  const Vocab vocab(data);
  ASSERT_EQ(vocab.size(), 262);
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(vocab.piece(byte), std::string(1, static_cast<char>(byte)));
    EXPECT_EQ(vocab.byte_id(static_cast<uint8_t>(byte)), byte);
  }
  EXPECT_EQ(vocab.piece(256), " the");
  EXPECT_EQ(vocab.text(256), "\u0120the");
  EXPECT_EQ(vocab.piece(257), "\u4E2D");
  EXPECT_EQ(vocab.piece(258), "<|x y|>");
  EXPECT_EQ(vocab.piece(259), "\u0120raw");
  EXPECT_EQ(vocab.piece(260), "plain text");
  EXPECT_EQ(vocab.piece(261), "[PAD261]");
  EXPECT_EQ(vocab.find("\u0120the"), 256);
  EXPECT_EQ(vocab.find("<|x y|>"), 258);
  EXPECT_EQ(vocab.find(" the"), std::nullopt);
  EXPECT_FALSE(vocab.is_special(256));
  EXPECT_TRUE(vocab.is_special(258));
  EXPECT_TRUE(vocab.is_special(259));
  EXPECT_FALSE(vocab.is_special(261));
}

TEST(Vocab, merges_that_are_missing_are_doubted) {
  VocabData data = strata::testing::demo_vocab();
  EXPECT_EQ(vocab_warning(data), "");
  const std::vector<std::string> all = data.merges;
  for (const size_t kept : {size_t{0}, size_t{1}, all.size() / 2}) {
    data.merges.assign(all.begin(), all.begin() + static_cast<ptrdiff_t>(kept));
    EXPECT_THAT(vocab_warning(data),
                HasSubstr("tokenizer.ggml.merges has " + std::to_string(kept) + " merges"));
  }
  // Nothing but bytes needs none.
  EXPECT_EQ(vocab_warning(byte_vocab()), "");
}

TEST(Vocab, every_token_is_found) {
  VocabData data = byte_vocab();
  for (int i = 0; i < 5000; ++i) {
    add_token(data, "t" + std::to_string(i), TokenType::kNormal);
  }
  const Vocab vocab(data);
  for (int32_t id = 0; id < vocab.size(); ++id) EXPECT_EQ(vocab.find(vocab.text(id)), id);
  EXPECT_EQ(vocab.find("t5000"), std::nullopt);
  EXPECT_EQ(vocab.find(""), std::nullopt);
}

TEST(Vocab, lists_that_do_not_fit_are_refused) {
  expect_error(VocabData{}, ErrorCode::kCorruptFile, "0 tokens");

  VocabData short_types = byte_vocab();
  short_types.types.pop_back();
  expect_error(short_types, ErrorCode::kCorruptFile, "256 tokens and 255 token types");

  VocabData duplicate = byte_vocab();
  add_token(duplicate, "A", TokenType::kNormal);
  expect_error(duplicate, ErrorCode::kCorruptFile, "tokens 65 and 256 have the same text");

  VocabData missing = byte_vocab();
  missing.tokens[0x0A] = "other";
  expect_error(missing, ErrorCode::kCorruptFile, "no token for the byte 0x0a");

  VocabData special_byte = byte_vocab();
  special_byte.types['A'] = 3;
  expect_error(special_byte, ErrorCode::kCorruptFile, "no token for the byte 0x41");

  for (const int32_t type : {0, 6, -1, 1 << 20}) {
    VocabData odd = byte_vocab();
    odd.types[7] = type;
    expect_error(odd, ErrorCode::kUnsupported, "token 7 has the unknown type");
  }
}

// A file's metadata with an array for each list.
struct File {
  File() {
    tokens.element = merges.element = gguf::ValueType::kString;
    tokens.strings = {"a", "b", "ab"};
    tokens.size = 3;
    merges.strings = {"a b"};
    merges.size = 1;
    types.element = gguf::ValueType::kU8;
    types.raw = std::as_bytes(std::span(type_bytes));
    types.size = type_bytes.size();
  }
  gguf::Metadata metadata(const std::function<void(std::vector<gguf::KeyValue>&)>& edit = {}) {
    std::vector<gguf::KeyValue> entries = {
        {"tokenizer.ggml.model", std::string_view("gpt2")},
        {"tokenizer.ggml.pre", std::string_view("qwen35")},
        {"tokenizer.ggml.tokens", tokens},
        {"tokenizer.ggml.token_type", types},
        {"tokenizer.ggml.merges", merges},
        {"tokenizer.ggml.eos_token_id", uint64_t{2}},
        {"tokenizer.ggml.bos_token_id", int16_t{1}},
        {"tokenizer.ggml.add_bos_token", true},
    };
    if (edit) edit(entries);
    return gguf::Metadata("m.gguf", entries);
  }
  std::vector<uint8_t> type_bytes = {1, 3, 4};
  gguf::Array tokens, merges, types;
};

TEST(ReadVocab, takes_what_the_file_says) {
  const VocabData data = read_vocab(File().metadata());
  EXPECT_EQ(data.model, "gpt2");
  EXPECT_EQ(data.pre, "qwen35");
  EXPECT_EQ(data.tokens, (std::vector<std::string>{"a", "b", "ab"}));
  EXPECT_EQ(data.types, (std::vector<int32_t>{1, 3, 4}));
  EXPECT_EQ(data.merges, std::vector<std::string>{"a b"});
  EXPECT_EQ(data.eos_id, 2);
  EXPECT_EQ(data.bos_id, 1);
  EXPECT_EQ(data.padding_id, std::nullopt);
  EXPECT_EQ(data.eot_id, std::nullopt);
  EXPECT_TRUE(data.add_bos);
}

TEST(ReadVocab, wrong_values_name_file_and_key) {
  const auto expect_bad = [](size_t entry, const gguf::Value& value) {
    File file;
    std::string key;
    try {
      read_vocab(file.metadata([&](std::vector<gguf::KeyValue>& entries) {
        entries[entry].value = value;
        key = entries[entry].key;
      }));
      ADD_FAILURE() << "no error for " << key;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorruptFile) << error.what();
      EXPECT_THAT(error.what(), HasSubstr("m.gguf"));
      EXPECT_THAT(error.what(), HasSubstr(key));
    }
  };
  expect_bad(0, uint32_t{1});
  expect_bad(2, std::string_view("not a list"));
  expect_bad(3, int32_t{3});
  expect_bad(4, File().types);
  expect_bad(5, int64_t{-1});
  expect_bad(5, uint64_t{1} << 31);
  expect_bad(6, std::string_view("x"));
  expect_bad(7, uint32_t{2});
}

TEST(ReadVocab, lists_are_required) {
  for (size_t missing = 0; missing < 5; ++missing) {
    File file;
    EXPECT_THROW(read_vocab(file.metadata([&](std::vector<gguf::KeyValue>& entries) {
                   entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(missing));
                 })),
                 Error)
        << missing;
  }
}

}  // namespace
}  // namespace strata::text
