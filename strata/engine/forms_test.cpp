#include "strata/engine/forms.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "strata/base/format.h"
#include "tests/support/vocab.h"

namespace strata::engine {
namespace {

// Tables of half a megabyte or so, and a moment to compile.
std::string large(int n, int n_states = 100'000) {
  return format("root ::= \"{}\" [a-c]{{0,{}}} \"x\"", n, n_states);
}

bool is_done(const std::shared_ptr<const Form>& form) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!form->done.load(std::memory_order_acquire)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

class FormsTest : public ::testing::Test {
 protected:
  const text::Tokenizer tokenizer_{strata::testing::byte_vocab()};
};

TEST_F(FormsTest, TheLastOnesAreKept) {
  Forms forms(tokenizer_, tokenizer_.n_vocab());
  const auto form = forms.ask("root ::= \"a\"");
  ASSERT_TRUE(is_done(form));
  EXPECT_NE(form->masks, nullptr);
  EXPECT_EQ(forms.ask("root ::= \"a\""), form);
  const auto broken = forms.ask("root ::= (");
  ASSERT_TRUE(is_done(broken));
  EXPECT_EQ(broken->code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(forms.ask("root ::= ("), broken);
  EXPECT_EQ(forms.n_compiled(), 2u);
}

// A client that asks and leaves costs no second of the thread that others wait for.
TEST_F(FormsTest, WhatNobodyWaitsForIsNotCompiled) {
  Forms forms(tokenizer_, tokenizer_.n_vocab());
  const auto first = forms.ask(large(0, 400'000));
  for (int i = 1; i <= 200; ++i) forms.ask(large(i));
  const auto last = forms.ask("root ::= \"a\"");
  ASSERT_TRUE(is_done(last));
  ASSERT_TRUE(is_done(first));
  // One of them may have been begun before it was let go.
  EXPECT_LE(forms.n_compiled(), 20u);
  // Who asks again gets it.
  const auto again = forms.ask(large(7));
  ASSERT_TRUE(is_done(again));
  EXPECT_NE(again->masks, nullptr) << again->error;
}

TEST_F(FormsTest, TablesThatAreKeptHaveABound) {
  size_t one = 0;
  {
    Forms forms(tokenizer_, tokenizer_.n_vocab());
    const auto form = forms.ask(large(0));
    ASSERT_TRUE(is_done(form));
    ASSERT_NE(form->masks, nullptr) << form->error;
    one = form->table_bytes;
    EXPECT_EQ(forms.table_bytes(), one);
  }
  ASSERT_GT(one, 50'000u);
  Forms forms(tokenizer_, tokenizer_.n_vocab(), {.max_kept = 16, .max_table_bytes = 3 * one});
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(is_done(forms.ask(large(i))));
    EXPECT_LE(forms.table_bytes(), 3 * one + one / 2);
  }
  // While requests have them, another waits; it gets its turn when they are gone.
  std::vector<std::shared_ptr<const Form>> held;
  for (int i = 20; i < 24; ++i) held.push_back(forms.ask(large(i)));
  ASSERT_TRUE(is_done(held[0]));
  EXPECT_LE(forms.table_bytes(), 3 * one + one / 2);
  while (!held.empty()) {
    ASSERT_TRUE(is_done(held.front()));
    held.erase(held.begin());
  }
  EXPECT_LE(forms.table_bytes(), 3 * one + one / 2);
}

}  // namespace
}  // namespace strata::engine
