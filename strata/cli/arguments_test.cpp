#include "strata/cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "strata/base/error.h"
#include "strata/cli/effects.h"
#include "tests/support/temp_folder.h"

namespace strata::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::optional<std::string> no_environment(const char*) { return std::nullopt; }

Invocation parse(std::vector<std::string> words) { return parse_arguments(words, no_environment); }

std::string complaint(std::vector<std::string> words) {
  try {
    parse(std::move(words));
  } catch (const Error& e) {
    EXPECT_EQ(exit_code(e.code()), 64) << e.what();
    return e.what();
  }
  return {};
}

class ConfigTest : public ::testing::Test {
 protected:
  std::string write(const std::string& text) {
    const std::string path = folder_.path("config.json");
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::string complaint(const std::string& text) {
    return cli::complaint({"serve", "--config", write(text)});
  }

  strata::testing::TempFolder folder_;
};

TEST(Arguments, CommandsModelsAndOptionsInAnyOrder) {
  const Invocation a = parse({"run", "--temp", "0", "m.gguf", "-p", "hi", "--show-plan"});
  EXPECT_EQ(a.command, kRun);
  EXPECT_EQ(a.settings.model, "m.gguf");
  EXPECT_EQ(a.settings.prompt, "hi");
  EXPECT_EQ(a.settings.temp, 0);
  EXPECT_TRUE(a.settings.show_plan);
  EXPECT_THAT(a.given, ElementsAre("prompt", "show-plan", "temp"));
  EXPECT_THAT(a.warnings, IsEmpty());
  EXPECT_EQ(parse({"run", "--temp=0.5"}).settings.temp, 0.5);
  // A value may look like an option, and the last of two counts.
  EXPECT_EQ(parse({"run", "-p", "--help me"}).settings.prompt, "--help me");
  EXPECT_EQ(parse({"run", "--presence-penalty", "-1"}).settings.presence_penalty, -1);
  EXPECT_EQ(parse({"serve", "--port", "1", "--port", "2"}).settings.port, 2);
}

TEST(Arguments, HelpAndVersionReply) {
  EXPECT_THAT(parse({}).reply, HasSubstr("serve"));
  EXPECT_THAT(parse({"--version"}).reply, HasSubstr("commit"));
  const std::string help = parse({"serve", "--help"}).reply;
  EXPECT_THAT(help, HasSubstr("--port N=8080"));
  EXPECT_THAT(help, HasSubstr("STRATA_API_KEY"));
  EXPECT_EQ(help.find("--incarnation"), std::string::npos);
  EXPECT_EQ(help.find("--prompt-file"), std::string::npos);
}

TEST(Arguments, WhatCannotBeMeantIsRefusedWithAHint) {
  EXPECT_THAT(complaint({"rnu"}), HasSubstr("did you mean run?"));
  EXPECT_THAT(complaint({"run", "--max-contxt", "5"}), HasSubstr("did you mean --max-context?"));
  EXPECT_THAT(complaint({"run", "--kv-resident", "4"}), HasSubstr("not in this version"));
  EXPECT_THAT(complaint({"run", "-x"}), HasSubstr("no option -x"));
  EXPECT_THAT(complaint({"run", "----temp", "1"}),
              HasSubstr("no option ----temp, did you mean --temp?"));
  EXPECT_THAT(complaint({"run", "--tmep=1"}), HasSubstr("no option --tmep, did you mean --temp?"));
  EXPECT_THAT(complaint({"run", "a.gguf", "b.gguf"}), HasSubstr("b.gguf"));
  EXPECT_THAT(complaint({"run", "--temp"}), HasSubstr("--temp"));
  EXPECT_THAT(complaint({"inspect"}), HasSubstr("needs a file"));
}

TEST(Arguments, OptionsOfOtherCommandsAreNamed) {
  const Invocation a = parse({"run", "-p", "x", "--port", "80", "--json"});
  EXPECT_THAT(a.warnings, ::testing::UnorderedElementsAre(HasSubstr("--port has no effect on run"),
                                                          HasSubstr("--json")));
}

TEST(Arguments, OptionsThatOthersMakeIdleAreNamed) {
  const auto idle = [](std::vector<std::string> words) {
    words.insert(words.begin(), "run");
    return without_effect(parse(std::move(words)));
  };
  EXPECT_THAT(idle({"--temp", "0", "--top-k", "5", "--seed", "1"}),
              ElementsAre(HasSubstr("--top-k"), HasSubstr("--seed")));
  EXPECT_THAT(idle({"--rope-scale", "2"}), ElementsAre(HasSubstr("--rope-scaling yarn")));
  EXPECT_THAT(idle({"--raw", "--system", "x"}), ElementsAre(HasSubstr("--raw")));
  EXPECT_THAT(idle({"--repeat-window", "5"}), ElementsAre(HasSubstr("--repetition-penalty")));
  EXPECT_THAT(
      idle({"--temp", "0.5", "--top-k", "5", "--rope-scaling", "yarn", "--rope-scale", "2"}),
      IsEmpty());
}

TEST_F(ConfigTest, TheCommandLineWinsOverTheFileAndTheFileOverTheEnvironment) {
  const auto env = [](const char* name) -> std::optional<std::string> {
    if (std::string_view(name) != "STRATA_API_KEY") return std::nullopt;
    return "of the environment";
  };
  EXPECT_THAT(parse_arguments({"serve"}, env).settings.api_keys, ElementsAre("of the environment"));
  EXPECT_THAT(parse_arguments({"run"}, env).settings.api_keys, IsEmpty());

  const std::string path = write(
      R"({"model": "m.gguf", "port": 9000, "temp": 0.5, "api-key": ["a", "b"], "show-plan": true})");
  const Settings s = parse_arguments({"serve", "--config", path, "--port", "9001"}, env).settings;
  EXPECT_EQ(s.model, "m.gguf");
  EXPECT_EQ(s.port, 9001);
  EXPECT_EQ(s.temp, 0.5);
  EXPECT_TRUE(s.show_plan);
  EXPECT_THAT(s.api_keys, ElementsAre("a", "b"));
  EXPECT_THAT(parse_arguments({"serve", "--config", path, "--api-key", "c"}, env).settings.api_keys,
              ElementsAre("c"));
  EXPECT_EQ(parse_arguments({"serve", "other.gguf", "--config", path}, env).settings.model,
            "other.gguf");
}

TEST_F(ConfigTest, UnknownKeysAndWrongValuesAreRefusedByName) {
  EXPECT_THAT(complaint(R"({"prot": 1})"), HasSubstr("--port"));
  EXPECT_THAT(complaint(R"({"port": "abc"})"), HasSubstr("abc"));
  EXPECT_THAT(complaint(R"({"port": null})"), HasSubstr("port"));
  EXPECT_THAT(complaint(R"({"port": [1]})"), HasSubstr("no list"));
  EXPECT_THAT(complaint(R"({"port": 1.5})"), HasSubstr("1.5"));
  EXPECT_THAT(complaint(R"({"config": "x"})"), HasSubstr("config"));
  EXPECT_THAT(complaint(R"({"fd": 3})"), HasSubstr("fd"));
  EXPECT_THAT(complaint("[]"), HasSubstr("object"));
  EXPECT_THAT(complaint("{"), HasSubstr("config.json"));
  EXPECT_THAT(complaint(""), HasSubstr("config.json"));
  EXPECT_THROW(parse({"serve", "--config", "/nowhere/c.json"}), Error);
  EXPECT_THROW(parse({"serve", "--config", folder_.path()}), Error);
}

TEST_F(ConfigTest, KeysThatAreGivenTwiceAreRefused) {
  EXPECT_THAT(complaint(R"({"port": 1, "host": "::1", "port": 2})"),
              HasSubstr("\"port\" is given twice"));
  EXPECT_THAT(complaint(R"({"port": 1, "p\u006frt": 1})"), HasSubstr("\"port\" is given twice"));
  EXPECT_THAT(complaint(R"({"allowed-host": [{"a": 1, "a": 2}]})"), HasSubstr("\"a\""));
  EXPECT_EQ(complaint(R"({"port": 1, "host": "::1"})"), "");
}

TEST_F(ConfigTest, WhatIsWrongIsToldInOurWords) {
  const std::string broken = complaint(R"({"port": 1,})");
  EXPECT_THAT(broken, HasSubstr("not valid JSON"));
  EXPECT_THAT(broken, HasSubstr("line 1, column 12"));
  EXPECT_EQ(broken.find("json.exception"), std::string::npos) << broken;
  EXPECT_THAT(complaint(R"({"--port": 1})"), HasSubstr("without dashes"));
}

TEST_F(ConfigTest, TextOfAStreamIsReadToItsEndOrRefused) {
  const auto refusal = [](const char* path) {
    std::FILE* in = std::fopen(path, "rb");
    EXPECT_NE(in, nullptr) << path;
    try {
      read_text_stream(in, "the prompt");
    } catch (const Error& e) {
      std::fclose(in);
      return std::pair(exit_code(e.code()), std::string(e.what()));
    }
    std::fclose(in);
    return std::pair(0, std::string());
  };
  const std::string text = "one\ntwo\xC3\xA4" + std::string(200'000, 'x');
  const std::string path = write(text);
  std::FILE* in = std::fopen(path.c_str(), "rb");
  EXPECT_EQ(read_text_stream(in, "the prompt"), text);
  std::fclose(in);
  // A folder opens, but cannot be read.
  EXPECT_THAT(refusal(folder_.path().c_str()), ::testing::Pair(74, HasSubstr("the prompt: ")));
  EXPECT_THAT(refusal("/dev/zero"), ::testing::Pair(64, HasSubstr("64 MiB")));
  EXPECT_THAT(refusal("/dev/null"), ::testing::Pair(0, ""));
}

TEST(Arguments, TextThatIsNoUtf8IsRefused) {
  EXPECT_NO_THROW(check_utf8("h\xC3\xA4 \xF0\x9F\x8E\xB9", "the prompt"));
  EXPECT_NO_THROW(check_utf8("", "the prompt"));
  for (const char* bad : {"ab\xFF\xFE", "ab\xC3", "ab\xED\xA0\x80"}) {
    try {
      check_utf8(bad, "the prompt");
      ADD_FAILURE() << bad;
    } catch (const Error& e) {
      EXPECT_EQ(exit_code(e.code()), 64);
      EXPECT_THAT(e.what(), HasSubstr("the prompt is no UTF-8"));
      EXPECT_THAT(e.what(), HasSubstr(" at 2"));
    }
  }
}

TEST(Arguments, KeysThatNoClientCanSendAreRefused) {
  for (const char* bad : {"", "a\nb", "a\rb", "a\x7f", " a", "a "}) {
    const std::string text = complaint({"serve", "--api-key", bad});
    EXPECT_THAT(text, HasSubstr("--api-key")) << bad;
    EXPECT_EQ(text.find("a\n"), std::string::npos);
  }
  const auto env = [](const char*) -> std::optional<std::string> { return "secret\n"; };
  EXPECT_THROW(parse_arguments({"serve"}, env), Error);
  EXPECT_EQ(complaint({"serve", "--api-key", "a b"}), "");
}

TEST_F(ConfigTest, KeysOfOtherCommandsAreNamed) {
  const Invocation a = parse({"run", "--config", write(R"({"port": 1, "think": true})")});
  EXPECT_THAT(a.warnings, ElementsAre(HasSubstr("\"port\"")));
  EXPECT_EQ(a.settings.think, "on");
}

}  // namespace
}  // namespace strata::cli
