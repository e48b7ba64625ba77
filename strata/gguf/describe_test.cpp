#include "strata/gguf/describe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "strata/gguf/escape.h"
#include "strata/gguf/test_files.h"

namespace strata::gguf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace strata::gguf::testing;

const Description::Key& key_of(const Description& d, std::string_view key) {
  for (const auto& entry : d.keys) {
    if (entry.key == key) return entry;
  }
  throw std::runtime_error("no key");
}

TEST(Describe, TheTinyModel) {
  const Description d = describe(open_bytes(tiny_file(), "tiny.gguf"));
  ASSERT_EQ(d.files.size(), 1u);
  EXPECT_EQ(d.files[0].path, "tiny.gguf");
  EXPECT_EQ(d.files[0].n_bytes, 3'645'472u);
  EXPECT_EQ(d.keys.size(), 52u);
  ASSERT_EQ(d.tensors.size(), 145u);
  EXPECT_THAT(d.tensors[16].shape, ElementsAre(16, 32, 64));
  ASSERT_EQ(d.types.size(), 1u);
  EXPECT_EQ(d.types[0].type, "F32");
  EXPECT_EQ(d.types[0].n_tensors, 145u);
  EXPECT_EQ(d.n_bytes, 4 * d.n_values);

  const auto& tokens = key_of(d, "tokenizer.ggml.tokens");
  EXPECT_EQ(tokens.type, "array of 512 strings");
  EXPECT_TRUE(tokens.shortened);
  EXPECT_THAT(tokens.text, HasSubstr("... 504 more]"));
  EXPECT_EQ(key_of(d, "qwen4exp.block_count").text, "5");
  EXPECT_EQ(key_of(d, "qwen4exp.nextn_hnorm_per_stream").text, "true");
  const auto& chat = key_of(d, "tokenizer.chat_template");
  EXPECT_TRUE(chat.shortened);
  EXPECT_EQ(chat.text.find('\n'), std::string::npos);
}

TEST(Describe, EveryKindOfValue) {
  const Description d = describe(open_bytes(small_file()));
  EXPECT_EQ(key_of(d, "a.u8").text, "200");
  EXPECT_EQ(key_of(d, "a.i8").text, "-100");
  EXPECT_EQ(key_of(d, "a.f32").text, "0.1");
  EXPECT_EQ(key_of(d, "a.u64").text, "18000000000000000000");
  EXPECT_EQ(key_of(d, "l.i32").text, "[-1, 0, 7]");
  EXPECT_EQ(key_of(d, "l.f32").text, "[0.5, 1.5]");
  EXPECT_EQ(key_of(d, "l.strings").text, "[\"\", \"one\", \"zwei\"]");
  EXPECT_EQ(key_of(d, "l.empty").text, "[]");
  EXPECT_EQ(key_of(d, "l.empty").type, "array of 0 i32");
  EXPECT_FALSE(key_of(d, "l.strings").shortened);
  // Largest share of the file first.
  EXPECT_EQ(d.types.front().type, "Q4_0");
}

TEST(Describe, TextHasKeysTensorsAndTotals) {
  const std::string text = to_text(describe(open_bytes(small_file())));
  EXPECT_THAT(text, HasSubstr("18 keys"));
  EXPECT_THAT(text, HasSubstr("5 tensors"));
  EXPECT_THAT(text, HasSubstr("blocks.weight Q4_0 [2, 3, 64]   216\n"));
  EXPECT_THAT(text, HasSubstr("4.500 bits a value"));
  EXPECT_EQ(text.back(), '\n');
}

TEST(Describe, ShardsAreListedAndTensorsSayTheirFile) {
  auto shards = split_model(open_bytes(small_file()), {2, 3});
  std::vector<std::unique_ptr<io::ByteSource>> sources;
  sources.push_back(source_of(shards[1], "b.gguf"));
  sources.push_back(source_of(shards[0], "a.gguf"));
  const Description d = describe(Model::from_sources(std::move(sources)));
  ASSERT_EQ(d.files.size(), 2u);
  EXPECT_EQ(d.files[0].path, "a.gguf");
  EXPECT_EQ(d.tensors[4].file, 1);
  const std::string text = to_text(d);
  EXPECT_THAT(text, HasSubstr("2 files"));
  EXPECT_THAT(text, HasSubstr("file 2"));
}

TEST(Escape, ControlBytesAndBadUtf8) {
  EXPECT_EQ(escaped("plain \xC3\xA4 \xE6\xA8\xA1 \xF0\x9F\xA6\x99"),
            "plain \xC3\xA4 \xE6\xA8\xA1 \xF0\x9F\xA6\x99");
  EXPECT_EQ(escaped("a\nb\tc\r\\\x1b\x7f"), "a\\nb\\tc\\r\\\\\\x1b\\x7f");
  EXPECT_EQ(escaped(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(escaped("\xff\xC3"), "\\xff\\xc3");
  EXPECT_EQ(escaped("\xC0\x80\xED\xA0\x80\xF5"), "\\xc0\\x80\\xed\\xa0\\x80\\xf5");
  EXPECT_EQ(escaped("\xC2\x9B"), "\\xc2\\x9b");  // a control character of eight bits
  EXPECT_EQ(escaped("abcdef", 3), "abc...");
  EXPECT_EQ(escaped("ab\xC3\xA4", 3), "ab...");
  EXPECT_EQ(escaped("abc", 3), "abc");
  // A message, parts of which are escaped already.
  EXPECT_EQ(printable("no such file a\\nb\x1b[31m\nc\xff"), "no such file a\\nb\\x1b[31m\nc\\xff");
  EXPECT_EQ(printable("abcdef", 3), "abc...");
}

}  // namespace
}  // namespace strata::gguf
