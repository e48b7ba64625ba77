#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "strata/cli/settings.h"

namespace strata::cli {

struct CommandSpec {
  Command command;
  std::string_view name;
  std::string_view help;
  bool hidden = false;
  bool needs_model = false;  // else the demo model is taken
};
std::span<const CommandSpec> command_table();
const CommandSpec& spec_of(Command command);

// Where the value of an option goes; its type is the option's.
using Place =
    std::variant<std::string Settings::*, int64_t Settings::*, double Settings::*, bool Settings::*,
                 std::optional<uint64_t> Settings::*, std::vector<std::string> Settings::*>;

// One option: what the command line, the config file, --help and docs/options.md know of it.
struct OptionSpec {
  std::string_view name;   // "max-context": --max-context, and the key in the config file
  std::string_view value;  // how help writes what follows: "N", "auto|f16|f32"; empty: a switch
  Place place;
  unsigned commands = 0;  // a set of Command
  std::string_view group;
  std::string_view help;  // one line
  double min = -std::numeric_limits<double>::max();
  double max = std::numeric_limits<double>::max();
  std::string_view letter = {};  // "p": -p as well
  std::string_view env = {};     // variable of the environment
  std::string_view unset = {};   // how the default is written where it is no value: "auto"
};
std::span<const OptionSpec> option_table();
// The names of the groups, in the order in which they are shown.
std::span<const std::string_view> option_groups();

// The option of this name that the command has; else one of another command; null if there is none.
const OptionSpec* find_option(std::string_view name, Command command);

bool is_switch(const OptionSpec& option);
bool is_list(const OptionSpec& option);

// Reads text into the setting; a list grows. Errors: kInvalidArgument naming the option, the value
// and what it takes.
void assign(const OptionSpec& option, std::string_view text, Settings& settings);
// As the command line writes it. Of a list: nothing.
std::string value_text(const OptionSpec& option, const Settings& settings);
std::string default_text(const OptionSpec& option);

// "--name=value" for every option of the command that is not at its default.
std::vector<std::string> to_arguments(Command command, const Settings& settings);

// What a mistyped word may have meant; empty if nothing is near.
std::string nearest(std::string_view word, std::span<const std::string_view> words);
// Why an option is not known: a later version's, or a near name.
std::string unknown_option(std::string_view name, Command command);

// The page docs/options.md.
std::string options_page();

}  // namespace strata::cli
