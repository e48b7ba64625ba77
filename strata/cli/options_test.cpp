#include "strata/cli/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "strata/base/error.h"

namespace strata::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

const OptionSpec& option(std::string_view name, Command command = kRun) {
  const OptionSpec* found = find_option(name, command);
  EXPECT_NE(found, nullptr) << name;
  return *found;
}

// What the option says about a value that it does not take; empty if it does.
std::string complaint(std::string_view name, std::string_view value, Command command = kRun) {
  Settings settings;
  try {
    assign(option(name, command), value, settings);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
    return e.what();
  }
  return {};
}

TEST(Options, TheTableIsSortedCompleteAndWithoutDoubles) {
  const auto table = option_table();
  const auto groups = option_groups();
  const OptionSpec* last = nullptr;
  for (const OptionSpec& each : table) {
    EXPECT_NE(std::find(groups.begin(), groups.end(), each.group), groups.end()) << each.name;
    EXPECT_NE(each.commands, 0u) << each.name;
    EXPECT_FALSE(each.help.empty()) << each.name;
    if (last != nullptr && last->group == each.group) {
      EXPECT_LT(last->name, each.name);
    }
    for (const OptionSpec& other : table) {
      if (&other != &each && other.name == each.name) {
        EXPECT_EQ(other.commands & each.commands, 0u) << each.name;
      }
    }
    last = &each;
  }
}

// A default that could not be typed, or that reads differently in help, would be a lie.
TEST(Options, EveryDefaultCanBeTyped) {
  for (const OptionSpec& each : option_table()) {
    if (is_list(each) || !each.unset.empty() || each.group == "Hidden") continue;
    const std::string text = value_text(each, Settings{});
    if (text.empty()) continue;
    Settings settings;
    EXPECT_NO_THROW(assign(each, text, settings)) << each.name << " " << text;
    EXPECT_EQ(value_text(each, settings), text) << each.name;
  }
}

TEST(Options, F119_PortsOutOfRangeAreRefused) {
  EXPECT_EQ(complaint("port", "0", kServe), "");
  EXPECT_EQ(complaint("port", "65535", kServe), "");
  for (const char* bad :
       {"70000", "-1", "abc", "", "80 ", "0x50", "8080.0", "99999999999999999999"}) {
    EXPECT_THAT(complaint("port", bad, kServe), HasSubstr("--port")) << bad;
  }
}

TEST(Options, F059_ScalingThatCannotBeIsRefused) {
  for (const char* bad : {"0", "0.5", "-4", "nan", "inf", "1e9"}) {
    EXPECT_NE(complaint("rope-scale", bad), "") << bad;
  }
  EXPECT_THAT(complaint("rope-scaling", "linear"), HasSubstr("auto|none|yarn"));
  EXPECT_NE(complaint("yarn-orig-ctx", "0"), "");
  EXPECT_NE(complaint("max-context", "0"), "");
  EXPECT_EQ(complaint("rope-scale", "2"), "");
}

TEST(Options, NumbersAreReadToTheirEnd) {
  Settings settings;
  assign(option("temp"), "0.25", settings);
  EXPECT_EQ(settings.temp, 0.25);
  EXPECT_NE(complaint("temp", "0.5x"), "");
  EXPECT_NE(complaint("temp", "nan"), "");
  EXPECT_NE(complaint("seed", "-1"), "");
  assign(option("seed"), "9223372036854775807", settings);
  EXPECT_EQ(settings.seed, uint64_t{9223372036854775807});
  // As far as the API takes them.
  assign(option("seed"), "9223372036854775808", settings);
  EXPECT_EQ(settings.seed, uint64_t{9223372036854775808U});
  assign(option("seed"), "18446744073709551615", settings);
  EXPECT_EQ(settings.seed, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(value_text(option("seed"), settings), "18446744073709551615");
  EXPECT_THAT(complaint("seed", "18446744073709551616"),
              HasSubstr("not between 0 and 18446744073709551615"));
  EXPECT_EQ(complaint("repetition-penalty", "1e-3"), "");
  EXPECT_EQ(complaint("repetition-penalty", "1000"), "");
  EXPECT_NE(complaint("repetition-penalty", "0"), "");
  // As the API.
  EXPECT_EQ(complaint("repetition-penalty", "1e-6"), "");
  EXPECT_EQ(complaint("repetition-penalty", "1e6"), "");
  EXPECT_NE(complaint("repetition-penalty", "1e-7"), "");
  EXPECT_NE(complaint("repetition-penalty", "1e7"), "");
  assign(option("max-context"), "4096", settings);
  assign(option("max-context"), "auto", settings);
  EXPECT_EQ(settings.max_context, 0);
}

TEST(Options, TheEngineIsStartedWithWhatIsItsBusiness) {
  Settings settings;
  EXPECT_TRUE(to_arguments(kEngine, settings).empty());
  settings.threads = 3;
  settings.weights = "mapped";
  settings.kv = "f32";
  settings.rope_scale = 2.5;
  settings.port = 1;                // the front's
  settings.api_keys = {"secret"};   // nobody's but the front's
  settings.config = "config.json";  // read already
  const auto arguments = to_arguments(kEngine, settings);
  EXPECT_THAT(arguments, UnorderedElementsAre("--threads=3", "--weights=mapped", "--kv=f32",
                                              "--rope-scale=2.5"));
}

TEST(Options, TypingMistakesAndLaterOptions) {
  EXPECT_THAT(unknown_option("max-contxt", kRun), HasSubstr("--max-context"));
  EXPECT_THAT(unknown_option("kv-resident", kRun), HasSubstr("not in this version"));
  EXPECT_THAT(unknown_option("zzzzzzzz", kRun), HasSubstr("strata run --help"));
}

TEST(Options, OneNameMayMeanDifferentThings) {
  EXPECT_EQ(option("prompt", kRun).value, "TEXT");
  EXPECT_EQ(option("prompt", kBench).value, "N");
  EXPECT_NE(find_option("prompt", kServe), nullptr);  // known, so that a warning can name it
  EXPECT_EQ(find_option("fd", kRun), nullptr);
}

TEST(Options, ThePageIsWrittenFromTheTable) {
  std::ifstream in(std::string(STRATA_SOURCE_DIR) + "/docs/options.md");
  const std::string page{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  EXPECT_EQ(page, options_page()) << "write it anew: strata options --markdown > docs/options.md";
}

}  // namespace
}  // namespace strata::cli
