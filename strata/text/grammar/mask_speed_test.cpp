// Time of masks on a vocabulary of true size. The bounds are generous: they catch a mask that walks
// the whole vocabulary each time, not a slow machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/grammar/gbnf.h"
#include "strata/text/grammar/json_text.h"
#include "strata/text/grammar/regex.h"
#include "strata/text/grammar/test_language.h"
#include "strata/text/grammar/test_vocabulary.h"
#include "strata/text/grammar/token_masks.h"

namespace strata::text {
namespace {

// Of this process, so that a busy machine counts less.
struct Clock {
  static double now() { return static_cast<double>(std::clock()) * 1e6 / CLOCKS_PER_SEC; }
};

constexpr size_t kVocabulary = 248'320;

struct Times {
  double sum = 0;
  double most = 0;
  int n = 0;
  void add(double us) {
    sum += us;
    most = std::max(most, us);
    ++n;
  }
  double mean() const { return sum / std::max(n, 1); }
};

class MaskSpeed : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto start = Clock::now();
    vocabulary_ = new testing::SyntheticVocabulary(kVocabulary, 1);
    const auto made = Clock::now();
    const std::vector<std::string>& pieces = vocabulary_->pieces();
    trie_ = new std::shared_ptr<const TokenTrie>(std::make_shared<const TokenTrie>(
        std::vector<std::string_view>(pieces.begin(), pieces.end()), std::vector<int32_t>{}));
    std::printf("vocabulary %.0f ms, tries %.0f ms, %zu nodes in %zu tries\n",
                (made - start) / 1000, (Clock::now() - made) / 1000, (*trie_)->nodes().size(),
                (*trie_)->parts().size());
    ids_ = new std::unordered_map<std::string_view, size_t>();
    for (size_t id = 0; id < pieces.size(); ++id) ids_->emplace(pieces[id], id);
  }
  static void TearDownTestSuite() {
    delete ids_;
    delete trie_;
    delete vocabulary_;
  }

  // Writes texts of the grammar with the longest tokens that the masks allow.
  static void run(const char* name, const Grammar& grammar, const std::vector<std::string>& texts) {
    const auto start = Clock::now();
    const auto compiled = compile(grammar);
    const double compile_ms = (Clock::now() - start) / 1000;
    TokenMasks masks(compiled, *trie_);
    Times first;   // nothing is known yet
    Times second;  // the same texts again
    for (Times* times : {&first, &second}) {
      for (const std::string& text : texts) write(masks, compiled, text, *times);
    }
    std::printf(
        "%-24s compile %7.2f ms, %6u states; first %7.1f us a mask (most %7.0f), then %6.1f "
        "(most %6.0f), %d masks, cache %zu KiB\n",
        name, compile_ms, compiled->n_states(), first.mean(), first.most, second.mean(),
        second.most, second.n, masks.n_cache_bytes() / 1024);
    EXPECT_LT(first.mean(), 3000) << name;
    EXPECT_LT(second.mean(), 1000) << name;
  }

  // A grammar whose masks take too much is given up, and soon.
  static void run_hostile(const char* name, const std::string& gbnf) {
    const auto compiled = compile(parse_gbnf(gbnf));
    TokenMasks masks(compiled, *trie_);
    Matcher matcher(compiled);
    std::vector<uint64_t> mask((*trie_)->n_words());
    const auto start = Clock::now();
    EXPECT_THROW(masks.mask(matcher, mask), Error) << name;
    const double ms = (Clock::now() - start) / 1000;
    std::printf("%-24s given up after %.0f ms\n", name, ms);
    EXPECT_LT(ms, 2000) << name;
  }

 private:
  static void write(TokenMasks& masks, const std::shared_ptr<const CompiledGrammar>& compiled,
                    const std::string& text, Times& times) {
    Matcher matcher(compiled);
    std::vector<uint64_t> mask((*trie_)->n_words());
    for (size_t at = 0; at < text.size();) {
      const auto start = Clock::now();
      ASSERT_TRUE(masks.mask(matcher, mask));
      times.add(Clock::now() - start);
      size_t length = std::min<size_t>(24, text.size() - at);
      for (; length > 0; --length) {
        const auto found = ids_->find(std::string_view(text).substr(at, length));
        if (found == ids_->end()) continue;
        const bool allowed = (mask[found->second / 64] >> (found->second % 64) & 1) != 0;
        ASSERT_TRUE(allowed) << "a token of a text of the grammar: " << found->first;
        break;
      }
      ASSERT_GT(length, 0u);
      ASSERT_TRUE(matcher.accept(text.substr(at, length)));
      at += length;
    }
  }

  static testing::SyntheticVocabulary* vocabulary_;
  static std::shared_ptr<const TokenTrie>* trie_;
  static std::unordered_map<std::string_view, size_t>* ids_;
};

testing::SyntheticVocabulary* MaskSpeed::vocabulary_ = nullptr;
std::shared_ptr<const TokenTrie>* MaskSpeed::trie_ = nullptr;
std::unordered_map<std::string_view, size_t>* MaskSpeed::ids_ = nullptr;

std::vector<std::string> json_texts() {
  std::vector<std::string> texts;
  std::mt19937 random(9);
  for (int i = 0; i < 20; ++i) {
    std::string items;
    for (uint32_t n = 1 + random() % 6; n > 0; --n) {
      items += format(
          "{{\"id\": {}, \"name\": \"the interest of consent {}\", \"tags\": [\"red\", "
          "\"line\\nend\"], \"point\": {{\"x\": {}.25, \"y\": -{}e3}}, \"ok\": true, \"none\": "
          "null}}, ",
          random() % 100000, random() % 50, random() % 100, random() % 10);
    }
    texts.push_back("{\"items\": [" + items +
                    "[[], [[1], {}]]], \"text\": \"She said: "
                    "\\\"\xE4\xB8\xAD\xE6\x96\x87\\\", (then) [left].\"}");
  }
  return texts;
}

TEST_F(MaskSpeed, any_json) { run("json object", json_object_grammar(), json_texts()); }

TEST_F(MaskSpeed, json_in_gbnf_with_white_space) {
  run("json gbnf", parse_gbnf(R"(root ::= object
value ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
)"),
      json_texts());
}

TEST_F(MaskSpeed, an_object_of_fixed_members) {
  Grammar grammar;
  const RuleId root = grammar.add_rule("root");
  std::vector<GrammarNodeId> parts{grammar.literal("{")};
  std::vector<std::string> texts(10, "{");
  for (int i = 0; i < 20; ++i) {
    const std::string key = format("{}\"property_{}\": \"", i == 0 ? "" : ", ", i);
    parts.push_back(grammar.literal(key));
    parts.push_back(
        grammar.repeat(json_string_character(grammar), 0, i % 2 == 0 ? kUnbounded : 40));
    parts.push_back(grammar.literal("\""));
    for (size_t k = 0; k < texts.size(); ++k) {
      texts[k] += key + format("interesting content {} of {}", k, i) + "\"";
    }
  }
  parts.push_back(grammar.literal("}"));
  for (std::string& text : texts) text += "}";
  grammar.define(root, grammar.sequence(parts));
  run("fixed members", grammar, texts);
}

TEST_F(MaskSpeed, a_long_bounded_string) {
  std::string text = "\"";
  for (int i = 0; i < 60; ++i) text += "the content of interest, ";
  Grammar grammar;
  const RuleId root = grammar.add_rule("root");
  const GrammarNodeId quote = grammar.literal("\"");
  grammar.define(
      root,
      grammar.sequence({quote, grammar.repeat(json_string_character(grammar), 10, 2000), quote}));
  run("string of 10..2000", grammar, {text + "\""});
}

TEST_F(MaskSpeed, patterns) {
  run("[a-z ]+", regex_grammar("[a-z ]+"), {"the content of interest in consent"});
  run("[^<]*", regex_grammar("[^<]*"), {"the content (of) interest, in consent"});
  run("search", regex_grammar("ent.*x|y$", {.full_match = false}), {"the content of interesty"});
  run("date", regex_grammar("\\d{4}-\\d{2}-\\d{2}"), {"2026-11-30", "1999-01-02"});
}

TEST_F(MaskSpeed, free_text_with_brackets) {
  run("brackets", parse_gbnf("root ::= ([^()] | \"(\" root \")\")*"),
      {"the content (of interest (in consent) is) here ((a)(b)) and there"});
}

TEST_F(MaskSpeed, what_doubles_with_each_character) {
  run_hostile("doubles",
              "root ::= f\nf ::= [ -~] (f | g) \"1\" | [ -~]\ng ::= [ -~] (f | g) \"2\" | [ -~]");
}

}  // namespace
}  // namespace strata::text
