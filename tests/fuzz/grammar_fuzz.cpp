// Any bytes as a grammar or regular expression, and any bytes as a text of it.
// Input: one byte of flags, the source, a zero byte, the text.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/text/grammar/compiled_grammar.h"
#include "strata/text/grammar/gbnf.h"
#include "strata/text/grammar/matcher.h"
#include "strata/text/grammar/regex.h"
#include "strata/text/grammar/test_language.h"
#include "strata/text/grammar/token_masks.h"

namespace strata::text {
namespace {

constexpr uint8_t kRegex = 1;  // else GBNF
constexpr uint8_t kSearch = 2;
constexpr uint8_t kInJsonString = 4;

constexpr GrammarLimits kLimits = {.max_source_bytes = 4096,
                                   .max_size = 20'000,
                                   .max_rules = 500,
                                   .max_depth = 60,
                                   .max_repeat = 100'000,
                                   .max_states = 20'000,
                                   .max_table_entries = 300'000,
                                   .max_work = 1'000'000};

const std::vector<std::string>& pieces() {
  static const std::vector<std::string> kPieces = [] {
    std::vector<std::string> all;
    for (int byte = 0; byte < 256; ++byte) all.emplace_back(1, static_cast<char>(byte));
    for (const char* piece : {"ab",       "aa",          "aab",      "abc",      "a.",
                              "\",",      "\"}",         "\\n",      "  ",       "\n ",
                              "12",       "the content", "\xC3\xA9", "\xA9\xC3", "\xE4\xB8\xAD\xE6",
                              "\x98\x80", "\xF0\x9F",    "()",       "((",       "))"}) {
      all.emplace_back(piece);
    }
    return all;
  }();
  return kPieces;
}

std::shared_ptr<const TokenTrie> trie() {
  static const auto kTrie = std::make_shared<const TokenTrie>(
      std::vector<std::string_view>(pieces().begin(), pieces().end()), std::vector<int32_t>{3});
  return kTrie;
}

std::optional<Grammar> parse(uint8_t flags, std::string_view source) {
  try {
    if ((flags & kRegex) == 0) return parse_gbnf(source, kLimits);
    return regex_grammar(
        source,
        {.full_match = (flags & kSearch) == 0, .in_json_string = (flags & kInJsonString) != 0},
        kLimits);
  } catch (const Error& e) {
    STRATA_CHECK(e.code() == ErrorCode::kInvalidArgument || e.code() == ErrorCode::kUnsupported);
    return std::nullopt;
  }
}

std::shared_ptr<const CompiledGrammar> compile_or_null(const Grammar& grammar) {
  try {
    return compile(grammar);
  } catch (const Error& e) {
    STRATA_CHECK(e.code() == ErrorCode::kInvalidArgument || e.code() == ErrorCode::kUnsupported);
    return nullptr;
  }
}

// The plain definition takes long for large grammars.
bool is_small(const Grammar& grammar) {
  if (grammar.n_nodes() > 200) return false;
  for (int i = 0; i < grammar.n_nodes(); ++i) {
    if (grammar.node(GrammarNodeId(i)).min > 40) return false;
  }
  return true;
}

void check_masks(TokenMasks& masks, const Matcher& matcher) {
  std::vector<uint64_t> mask(masks.trie().n_words());
  masks.mask(matcher, mask);
  for (size_t id = 0; id < pieces().size(); ++id) {
    Matcher next(matcher);
    const bool allowed = id == 3 ? matcher.may_end() : next.accept(pieces()[id]);
    STRATA_CHECK(allowed == ((mask[id / 64] >> (id % 64) & 1) != 0));
  }
}

void check_text(const Grammar& grammar, const std::shared_ptr<const CompiledGrammar>& compiled,
                std::string_view text) {
  TokenMasks masks(compiled, trie());
  Matcher whole(compiled);
  const bool accepted = whole.accept(text);
  Matcher bytes(compiled);
  size_t n = 0;
  for (; n < text.size(); ++n) {
    if (n < 8) check_masks(masks, bytes);
    const std::string forced = bytes.forced_bytes(4);
    STRATA_CHECK(Matcher(bytes).accept(forced));
    if (!bytes.accept(text.substr(n, 1))) break;
    STRATA_CHECK(forced.empty() || forced[0] == text[n]);
  }
  STRATA_CHECK(accepted == (n == text.size()));
  STRATA_CHECK(!accepted || whole.may_end() == bytes.may_end());
  if (text.size() > 24 || !is_small(grammar)) return;
  STRATA_CHECK(testing::SlowLanguage(grammar).contains(text) == (accepted && whole.may_end()));
}

void run(uint8_t flags, std::string_view input) {
  const size_t zero = std::min(input.find('\0'), input.size());
  const std::optional<Grammar> grammar = parse(flags, input.substr(0, zero));
  if (!grammar) return;
  const auto compiled = compile_or_null(*grammar);
  if (!compiled) return;
  try {
    check_text(*grammar, compiled, input.substr(std::min(zero + 1, input.size())).substr(0, 2000));
  } catch (const Error& e) {
    STRATA_CHECK(e.code() == ErrorCode::kUnsupported);  // too deep or too ambiguous
  }
}

}  // namespace
}  // namespace strata::text

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  strata::text::run(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
