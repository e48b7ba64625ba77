// Texts made to be slow or to need a deep stack: F-011 and F-012.

#include <gtest/gtest.h>

#include <ctime>
#include <map>
#include <random>
#include <span>

#include "strata/text/tokenizer.h"
#include "tests/support/small_stack.h"
#include "tests/support/vocab.h"

namespace strata::text {
namespace {

using Ids = std::vector<int32_t>;

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kSmallStack = 512 << 10;
// CPU time, since other tests run beside this one. Linear work takes a tenth of a second, with
// sanitizers about one; quadratic work on 1 MiB takes minutes.
constexpr double kLimitSeconds = 8;

std::string repeat(std::string_view unit, size_t n_bytes) {
  std::string text;
  while (text.size() + unit.size() <= n_bytes) text += unit;
  return text;
}

std::string random_letters(size_t n_bytes) {
  std::mt19937 random(11);
  std::string text;
  while (text.size() < n_bytes) text += static_cast<char>('a' + random() % 26);
  return text;
}

struct Hostile {
  std::string name;
  std::string text;
};

constexpr size_t kNamedInF011 = 5;  // the first ones
std::vector<Hostile> hostile_texts(size_t n) {
  return {
      {"one letter", repeat("a", n)},
      {"one combining mark after a letter", "e" + repeat("\u0301", n)},
      {"one digit", repeat("7", n)},
      {"one CJK character", repeat("\u4E2D", n)},
      {"random letters", random_letters(n)},
      {"one sign", repeat("=", n)},
      {"spaces", repeat(" ", n)},
      {"spaces, then text", repeat(" ", n) + "x"},
      {"newlines", repeat("\n", n)},
      {"newlines, then text", repeat("\n", n) + "x"},
      {"spaces and newlines", repeat(" \n", n)},
      {"CRLF", repeat("\r\n", n)},
      {"tabs", repeat("\t", n)},
      {"apostrophes", repeat("'", n)},
      {"starts of special tokens", repeat("<|im_", n)},
      {"special tokens", repeat("<|im_end|>", n)},
      {"bytes that are no UTF-8", repeat("\xFF", n)},
      {"cut characters", repeat("a\xE2\x82", n)},
  };
}

void expect_fast_round_trips(const Tokenizer& tokenizer, std::span<const Hostile> texts) {
  for (const Hostile& hostile : texts) {
    const std::clock_t start = std::clock();
    const Ids ids = tokenizer.encode(hostile.text, SpecialParsing::kAllow);
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    EXPECT_LT(seconds, kLimitSeconds) << hostile.name;
    EXPECT_TRUE(tokenizer.decode(ids) == hostile.text) << hostile.name;
  }
}

VocabData demo_with(const std::string& pre) {
  VocabData data = strata::testing::demo_vocab();
  data.pre = pre;
  return data;
}

TEST(TokenizerFieldCases, F011_one_MiB_of_the_same_on_a_small_and_a_large_stack) {
  const std::vector<Hostile> texts = hostile_texts(kMiB);
  const std::span<const Hostile> first = std::span(texts).first(kNamedInF011);
  const Tokenizer qwen35(demo_with("qwen35"));
  const Tokenizer qwen2(demo_with("qwen2"));
  strata::testing::run_on_stack(kSmallStack, [&] {
    expect_fast_round_trips(qwen35, texts);
    expect_fast_round_trips(qwen2, first);
  });
  strata::testing::run_on_stack(8 * kMiB, [&] { expect_fast_round_trips(qwen35, first); });
}

// A vocabulary whose merges join any run of a letter, all the way up: the longest BPE there is.
TEST(TokenizerFieldCases, F011_one_letter_with_merges_that_join_it) {
  VocabData data = strata::testing::byte_vocab();
  for (size_t n = 1; n < 4096; n *= 2) {
    strata::testing::add_merge(data, repeat("a", n), repeat("a", n));
  }
  const Tokenizer tokenizer(data);
  strata::testing::run_on_stack(kSmallStack, [&] {
    EXPECT_EQ(tokenizer.encode(repeat("a", kMiB), SpecialParsing::kNone), Ids(256, 256 + 11));
    const Hostile text{"one letter", repeat("a", kMiB)};
    expect_fast_round_trips(tokenizer, std::span(&text, 1));
  });
}

// The reference: pieces as a person reads the pattern, and BPE by its definition, one rank after
// the other.
Ids slow_bpe(const VocabData& data, const Vocab& vocab, std::string_view piece) {
  static std::map<std::pair<int32_t, int32_t>, size_t> ranks;
  static std::vector<int32_t> joined;
  if (ranks.empty()) {
    for (const std::string& merge : data.merges) {
      const size_t space = merge.find(' ');
      const std::string left = merge.substr(0, space);
      const std::string right = merge.substr(space + 1);
      ranks.emplace(std::pair(vocab.find(left).value(), vocab.find(right).value()), joined.size());
      joined.push_back(vocab.find(left + right).value());
    }
  }
  Ids ids;
  for (const char byte : piece) ids.push_back(vocab.byte_id(static_cast<uint8_t>(byte)));
  for (;;) {
    size_t best = joined.size();
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = ranks.find({ids[i], ids[i + 1]});
      if (found != ranks.end()) best = std::min(best, found->second);
    }
    if (best == joined.size()) return ids;
    Ids next;
    for (size_t i = 0; i < ids.size(); ++i) {
      const bool pair = i + 1 < ids.size();
      const auto found = pair ? ranks.find({ids[i], ids[i + 1]}) : ranks.end();
      const bool join = found != ranks.end() && found->second == best;
      next.push_back(join ? joined[best] : ids[i]);
      if (join) ++i;
    }
    ids = next;
  }
}

TEST(TokenizerFieldCases, F011_ids_equal_a_reference_on_10_KiB) {
  constexpr size_t kBytes = 10 << 10;
  const VocabData data = demo_with("qwen35");
  const Vocab vocab(data);
  const Tokenizer qwen35(data);
  const Tokenizer qwen2(demo_with("qwen2"));
  const auto reference = [&](const std::vector<std::string>& pieces) {
    Ids ids;
    for (const std::string& piece : pieces) {
      const Ids more = slow_bpe(data, vocab, piece);
      ids.insert(ids.end(), more.begin(), more.end());
    }
    return ids;
  };
  const auto expect_pieces = [&](std::initializer_list<const Tokenizer*> tokenizers,
                                 const std::vector<std::string>& pieces) {
    std::string text;
    for (const std::string& piece : pieces) text += piece;
    const Ids expected = reference(pieces);
    for (const Tokenizer* tokenizer : tokenizers) {
      EXPECT_EQ(tokenizer->encode(text, SpecialParsing::kNone), expected) << text.substr(0, 20);
    }
  };
  const std::string marks = repeat("\u0301", kBytes);
  expect_pieces({&qwen35, &qwen2}, {repeat("a", kBytes)});
  expect_pieces({&qwen35, &qwen2}, {repeat("\u4E2D", kBytes)});
  expect_pieces({&qwen35, &qwen2}, {random_letters(kBytes)});
  expect_pieces({&qwen35, &qwen2}, std::vector<std::string>(kBytes, "7"));
  expect_pieces({&qwen35, &qwen2}, {repeat("\n", kBytes)});
  expect_pieces({&qwen35, &qwen2}, {repeat(" ", kBytes - 1), " x"});
  expect_pieces({&qwen35}, {"e" + marks});
  expect_pieces({&qwen2}, {"e", marks});
}

// PCRE2 counts its steps and gives up by default after ten million.
TEST(TokenizerFieldCases, F012_a_long_run_of_spaces_meets_no_step_limit) {
  const std::string text = repeat(" ", 12 * kMiB) + "x";
  std::vector<std::string_view> pieces;
  Pretokenizer("qwen35").split(text, pieces);
  ASSERT_EQ(pieces.size(), 2U);
  EXPECT_EQ(pieces[1], " x");
}

}  // namespace
}  // namespace strata::text
