#include "strata/cli/model_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "strata/base/error.h"
#include "strata/cli/chat.h"
#include "strata/cli/options.h"
#include "strata/cli/reference.h"

namespace strata::cli {
namespace {

using ::testing::HasSubstr;

std::string demo() { return std::string(STRATA_SOURCE_DIR) + "/models/strata-demo.gguf"; }
std::string golden(const std::string& name) {
  return std::string(STRATA_SOURCE_DIR) + "/tests/golden/qwen4exp/" + name;
}

TEST(ModelSetup, NamesComeFromPaths) {
  EXPECT_EQ(model_name("models/strata-demo.gguf"), "strata-demo");
  EXPECT_EQ(model_name("/m/big-00002-of-00012.gguf"), "big");
  EXPECT_EQ(model_name("/m/folder/"), "folder");
  EXPECT_EQ(model_name("a.b.Q4_K.gguf"), "a.b.Q4_K");
  EXPECT_EQ(model_name("-00002-of-00012.gguf"), "-00002-of-00012");
}

TEST(ModelSetup, TheDemoModelIsFoundFromTheProgram) {
  // Tests run in the repository.
  EXPECT_THAT(find_model(Settings{}), HasSubstr("strata-demo.gguf"));
  Settings settings;
  settings.model = "other.gguf";
  EXPECT_EQ(find_model(settings), "other.gguf");
}

TEST(ModelSetup, WordsOfOptionsGetTheirMeaning) {
  const model::InstanceOptions automatic = instance_options({}, "m.gguf");
  EXPECT_FALSE(automatic.weights || automatic.kv || automatic.rope_scaling);
  Settings s;
  s.weights = "copied";
  s.kv = "f32";
  s.rope_scaling = "yarn";
  const model::InstanceOptions chosen = instance_options(s, "m.gguf");
  EXPECT_EQ(chosen.weights, model::WeightForm::kCopied);
  EXPECT_EQ(chosen.kv, kernels::CacheType::kF32);
  EXPECT_EQ(chosen.rope_scaling, model::RopeScaling::kYarn);
  for (std::string Settings::*const option :
       {&Settings::weights, &Settings::kv, &Settings::rope_scaling}) {
    Settings wrong;
    wrong.*option = "blocks";
    EXPECT_THROW(instance_options(wrong, "m.gguf"), Error);
  }
}

// Every word that the options take has a meaning.
TEST(ModelSetup, EveryWordOfTheOptionsIsKnown) {
  for (const char* name : {"weights", "kv", "rope-scaling"}) {
    const OptionSpec* const option = find_option(name, kRun);
    ASSERT_NE(option, nullptr) << name;
    std::istringstream words{std::string(option->value)};
    for (std::string word; std::getline(words, word, '|');) {
      Settings s;
      assign(*option, word, s);
      EXPECT_NO_THROW(instance_options(s, "m.gguf")) << name << " " << word;
    }
  }
}

class ChatTest : public ::testing::Test {
 protected:
  std::string rendered(const Chat& chat) const { return tokenizer_->decode(chat.prompt().ids); }

  gguf::Model file_ = gguf::Model::open(demo());
  std::unique_ptr<text::Tokenizer> tokenizer_ = read_tokenizer(file_);
  std::unique_ptr<text::ChatTemplate> template_ = read_chat_template(file_, *tokenizer_);
};

TEST_F(ChatTest, PromptsOfAConversation) {
  Chat chat(*tokenizer_, *template_, "Be brief.", "auto");
  chat.add_user("One?");
  const std::string first =
      "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nOne?<|im_end|>\n"
      "<|im_start|>assistant\n";
  EXPECT_EQ(rendered(chat), first + "<think>\n\n</think>\n\n");
  chat.add_answer("<think>\nhm\n</think>\n\nTwo.", false);
  chat.add_user("Three?");
  const std::string second = rendered(chat);
  EXPECT_THAT(second, HasSubstr("Two.<|im_end|>\n<|im_start|>user\nThree?"));
  EXPECT_THAT(second, ::testing::Not(HasSubstr("hm")));
  chat.reset();
  EXPECT_TRUE(chat.empty());
}

TEST_F(ChatTest, AThoughtThatThePromptOpenedIsNoContent) {
  const text::ChatTemplate plain(
      "{% for m in messages %}{{ m.role }}:{{ m.content }}|{{ m.reasoning_content }};{% endfor %}"
      "{% if enable_thinking %}<think>\n{% endif %}",
      "", "");
  Chat chat(*tokenizer_, plain, "", "on");
  chat.add_user("One?");
  ASSERT_TRUE(chat.prompt().in_reasoning);
  chat.add_answer("hm\n</think>\n\nTwo.", true);
  // A tag in the middle of an answer is a part of it.
  chat.add_answer("Close it with </think>.", false);
  EXPECT_EQ(rendered(chat),
            "user:One?|;assistant:Two.|hm;assistant:Close it with </think>.|;<think>\n");
}

TEST_F(ChatTest, ThinkingIsTheTemplatesChoiceUnlessAskedFor) {
  Chat on(*tokenizer_, *template_, "", "on"), off(*tokenizer_, *template_, "", "off");
  on.add_user("x");
  off.add_user("x");
  EXPECT_TRUE(rendered(on).ends_with("<|im_start|>assistant\n<think>\n"));
  EXPECT_TRUE(rendered(off).ends_with("<think>\n\n</think>\n\n"));
}

TEST_F(ChatTest, F014_WhatIsTypedNeverBecomesASpecialToken) {
  Chat chat(*tokenizer_, *template_, "", "auto");
  chat.add_user("<|im_end|>");
  const auto ids = chat.prompt().ids;
  // One ends the user's turn; the typed one is plain text.
  EXPECT_EQ(std::count(ids.begin(), ids.end(), *tokenizer_->find("<|im_end|>")), 1);
}

TEST(Reference, BothLayoutsAreRead) {
  const gguf::Model tiny = gguf::Model::open(golden("tiny.reference.gguf"));
  const Reference stream = read_reference(tiny, {.per_stream = true, .as_the_file_says = true});
  ASSERT_EQ(stream.sequences.size(), 1u);
  EXPECT_EQ(stream.n_vocab, 512);
  EXPECT_EQ(stream.sequences[0].ids.size(), 120u);
  ASSERT_EQ(stream.sequences[0].drafts.size(), 3u);
  EXPECT_EQ(stream.sequences[0].drafts[2].size(), 117u * 512u);
  const Reference full = read_reference(tiny, {.per_stream = false, .as_the_file_says = false});
  EXPECT_NE(full.sequences[0].drafts[0], stream.sequences[0].drafts[0]);

  const gguf::Model large = gguf::Model::open(golden("strata-demo.reference.gguf"));
  const Reference four = read_reference(large, {.per_stream = true, .as_the_file_says = true});
  ASSERT_EQ(four.sequences.size(), 4u);
  EXPECT_EQ(four.sequences[2].ids.size(), 48u);
  EXPECT_EQ(four.sequences[2].drafts.size(), 2u);
  const Reference other = read_reference(large, {.per_stream = false, .as_the_file_says = false});
  EXPECT_TRUE(other.sequences[0].drafts.empty());
  EXPECT_TRUE(other.other_norm);
}

TEST(Reference, AModelIsNoReference) {
  const gguf::Model model = gguf::Model::open(golden("tiny.gguf"));
  EXPECT_THROW(read_reference(model, {}), Error);
}

}  // namespace
}  // namespace strata::cli
