#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/cli/options.h"

namespace strata::cli {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string commands_text(unsigned commands) {
  std::string out;
  for (const CommandSpec& spec : command_table()) {
    if (spec.hidden || (commands & spec.command) == 0) continue;
    out += format("{}{}", out.empty() ? "" : ", ", spec.name);
  }
  return out;
}

// A list item, wrapped.
std::string exit_codes_text() {
  constexpr size_t kColumns = 118;
  std::string text, line = "- Exit codes: 0 done";
  for (const ExitStatus& each : exit_statuses()) {
    const std::string part = format("{} {}", each.status, each.words);
    if (line.size() + part.size() + 3 > kColumns) {
      text += line + ",\n";
      line = "  " + part;
    } else {
      line += ", " + part;
    }
  }
  return text + line + ".\n";
}

std::string row(const OptionSpec& option) {
  const std::string letter = option.letter.empty() ? "" : format("`-{}`, ", option.letter);
  const std::string value = option.value.empty() ? "" : format(" {}", escaped(option.value));
  const std::string fallback = is_switch(option) ? "" : default_text(option);
  const std::string env = option.env.empty() ? "" : format(" Environment: `{}`.", option.env);
  return format("| {}`--{}{}` | {} | {} | {}.{} |\n", letter, option.name, value,
                fallback.empty() ? "" : format("`{}`", fallback), commands_text(option.commands),
                escaped(option.help), env);
}

}  // namespace

std::string options_page() {
  std::string page =
      "# Options\n\n"
      "Written by `strata options --markdown`, from the table that makes the command line; a test "
      "compares them.\n\n"
      "`strata COMMAND [MODEL] [OPTIONS]`. MODEL is a GGUF file, any shard of a split one, or a "
      "folder that holds one\n"
      "model. Without it the commands take the demo model: `models/strata-demo.gguf` below the "
      "current folder, or in the\n"
      "repository that the program was built in.\n\n"
      "- An option that has no effect in the chosen command or configuration is named by a warning "
      "on stderr.\n"
      "- `--config FILE` reads a JSON object whose keys are the names below without the dashes, "
      "and "
      "`\"model\"`; values are\n"
      "  numbers, strings, `true` for switches, lists for what may be repeated. Unknown keys are "
      "refused. The command line\n"
      "  wins over the file, the file over the environment.\n";
  page += exit_codes_text();
  page += "\n## Commands\n\n| command | does |\n| --- | --- |\n";
  for (const CommandSpec& spec : command_table()) {
    if (!spec.hidden) page += format("| `strata {}` | {} |\n", spec.name, spec.help);
  }
  page += "| `strata --version` | version, commit, instruction sets, backends |\n";
  for (const std::string_view group : option_groups()) {
    if (group == "Hidden") continue;
    page += format(
        "\n## {}\n\n| option | default | commands | meaning |\n| --- | --- | --- | --- |\n", group);
    for (const OptionSpec& option : option_table()) {
      if (option.group == group) page += row(option);
    }
  }
  return page;
}

}  // namespace strata::cli
