// Any bytes as text of a tokenizer, and any lines as its vocabulary.
// Input: one byte of flags, one byte that says how the rest is cut, the rest.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/text/tokenizer.h"
#include "strata/text/utf8.h"
#include "strata/text/utf8_stream.h"
#include "tests/support/vocab.h"

namespace strata::text {
namespace {

constexpr uint8_t kQwen2 = 1;            // else qwen35
constexpr uint8_t kBuildVocabulary = 2;  // the rest is lines of a vocabulary, then text
constexpr uint8_t kAllowFirst = 4;       // the segment permissions alternate, starting allowed

VocabData small_vocab(std::string_view pre) {
  VocabData data = strata::testing::byte_vocab(pre);
  constexpr std::string_view kMerges[][2] = {
      {" ", "\n"},      {"a", "a"},           {"aa", "aa"},     {" ", "a"},        {"b", "a"},
      {"\n", "\n"},     {" a", "a"},          {"\xCC", "\x81"}, {"e", "\xCC\x81"}, {"\xE4", "\xB8"},
      {"\xB8", "\xAD"}, {"\xE4\xB8", "\xAD"}, {"\xF0", "\x9F"}, {"\x98", "\x80"},  {"<", "|"},
  };
  for (const auto& [left, right] : kMerges) strata::testing::add_merge(data, left, right);
  for (const std::string_view text : {"<|im_start|>", "<|im_end|>", "<|im"}) {
    strata::testing::add_token(data, std::string(text), TokenType::kControl);
  }
  for (const std::string_view text : {"<think>", "</think>"}) {
    strata::testing::add_token(data, std::string(text), TokenType::kUserDefined);
  }
  return data;
}

// The streamed text of ids is valid, never cut inside a character, and the same as that of all
// their bytes at once.
void check_stream(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  Utf8Stream stream;
  std::string streamed;
  for (const int32_t id : ids) {
    const std::string delta = stream.append(tokenizer.piece(id));
    STRATA_CHECK(valid_utf8_prefix(delta) == delta.size());
    STRATA_CHECK(stream.pending().size() <= 3);
    streamed += delta;
  }
  streamed += stream.finish();
  Utf8Stream whole;
  std::string expected = whole.append(tokenizer.decode(ids));
  expected += whole.finish();
  STRATA_CHECK(streamed == expected);
}

void check_text(const Tokenizer& tokenizer, std::string_view text, size_t cut, bool allow_first) {
  for (const SpecialParsing special : {SpecialParsing::kNone, SpecialParsing::kAllow}) {
    const std::vector<int32_t> ids = tokenizer.encode(text, special);
    STRATA_CHECK(tokenizer.decode(ids) == text);
    check_stream(tokenizer, ids);
    const bool allow = special == SpecialParsing::kAllow;
    std::vector<Segment> parts;
    for (size_t pos = 0; pos < text.size(); pos += cut) {
      parts.push_back({text.substr(pos, cut), allow});
    }
    STRATA_CHECK(tokenizer.encode(parts) == ids);
    for (const int32_t id : ids) STRATA_CHECK(allow || !tokenizer.is_special(id));
  }
  // Mixed permissions: a special token covers allowed bytes only.
  std::vector<Segment> mixed;
  std::string allowed;  // one character a byte of text
  bool allow = allow_first;
  for (size_t pos = 0; pos < text.size(); pos += cut, allow = !allow) {
    mixed.push_back({text.substr(pos, cut), allow});
    allowed.append(mixed.back().text.size(), allow ? 'y' : 'n');
  }
  const std::vector<int32_t> ids = tokenizer.encode(mixed);
  STRATA_CHECK(tokenizer.decode(ids) == text);
  size_t pos = 0;
  for (const int32_t id : ids) {
    const size_t n = tokenizer.piece(id).size();
    if (tokenizer.is_special(id)) {
      STRATA_CHECK(allowed.substr(pos, n) == std::string(n, 'y'));
    }
    pos += n;
  }
}

// Lines: "mLEFT RIGHT" a merge, "tNTEXT" a token of type N, "eID" the end token; after an empty
// line, text.
void check_vocabulary(std::string_view lines, std::string_view pre, size_t cut, bool allow_first) {
  VocabData data = strata::testing::byte_vocab(pre);
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    if (line.empty()) break;
    if (line[0] == 'm') data.merges.emplace_back(line.substr(1));
    if (line[0] == 'e') data.eos_id = std::atoi(std::string(line.substr(1)).c_str());
    if (line[0] != 't' || line.size() < 2) continue;
    data.types.push_back(line[1] - '0');
    data.tokens.emplace_back(line.substr(2));
  }
  try {
    const Tokenizer tokenizer(data);
    check_text(tokenizer, lines, cut, allow_first);
  } catch (const Error& error) {
    STRATA_CHECK(error.code() == ErrorCode::kCorruptFile ||
                 error.code() == ErrorCode::kUnsupported);
  }
}

}  // namespace
}  // namespace strata::text

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strata::text;
  if (size < 2) return 0;
  static const Tokenizer qwen35(small_vocab("qwen35"));
  static const Tokenizer qwen2(small_vocab("qwen2"));
  const uint8_t flags = data[0];
  const size_t cut = data[1] % 32U + 1;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  const bool is_qwen2 = (flags & kQwen2) != 0;
  const bool allow_first = (flags & kAllowFirst) != 0;
  if ((flags & kBuildVocabulary) != 0) {
    check_vocabulary(rest, is_qwen2 ? "qwen2" : "qwen35", cut, allow_first);
  } else {
    check_text(is_qwen2 ? qwen2 : qwen35, rest, cut, allow_first);
  }
  return 0;
}
