#include "strata/cli/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/cli/version.h"

namespace strata::cli {
namespace {

std::string overview() {
  std::string text =
      "Runs sparse mixture-of-experts language models from GGUF files.\n"
      "Usage: strata COMMAND [MODEL] [OPTIONS]\n\n";
  for (const CommandSpec& spec : command_table()) {
    if (!spec.hidden) text += format("  {:<11}{}\n", spec.name, spec.help);
  }
  text +=
      "  --version  version, commit, instruction sets, backends\n\n"
      "Without MODEL the demo model is taken. `strata COMMAND --help` lists the options.\n";
  return text;
}

const CommandSpec* find_command(std::string_view word) {
  for (const CommandSpec& spec : command_table()) {
    if (spec.name == word) return &spec;
  }
  return nullptr;
}

[[noreturn]] void refuse_command(const std::string& word) {
  std::vector<std::string_view> names;
  std::string list;
  for (const CommandSpec& spec : command_table()) {
    if (spec.hidden) continue;
    names.push_back(spec.name);
    list += format("{}{}", list.empty() ? "" : ", ", spec.name);
  }
  const std::string near = nearest(word, names);
  throw Error(ErrorCode::kInvalidArgument,
              format("there is no command \"{}\"{}; the commands are {}", word,
                     near.empty() ? std::string() : format(", did you mean {}?", near), list));
}

// Options of one command by their names on the command line; those of others are known, too, so
// that they can be warned about instead of refused.
struct Parsed {
  std::map<const OptionSpec*, CLI::Option*> options;
  CLI::Option* model = nullptr;
};

class HelpFormat final : public CLI::Formatter {
 public:
  explicit HelpFormat(std::string model) : model_(std::move(model)) { column_width(38); }
  std::string make_usage(const CLI::App* app, std::string) const override {
    return format("Usage: {} {} [OPTIONS]\n", app->get_name(), model_);
  }

 private:
  std::string model_;
};

Parsed add_options(CLI::App& app, const CommandSpec& spec) {
  Parsed parsed;
  parsed.model = app.add_option("MODEL")->group("");
  for (const std::string_view group : option_groups()) {
    for (const OptionSpec& option : option_table()) {
      if (option.group != group || find_option(option.name, spec.command) != &option) continue;
      const bool ours = (option.commands & spec.command) != 0;
      if (!ours && option.group == "Hidden") continue;
      std::string names = format("--{}", option.name);
      if (!option.letter.empty() && ours) names = format("-{},{}", option.letter, names);
      CLI::Option* o = is_switch(option) ? app.add_flag(names) : app.add_option(names)->expected(1);
      o->multi_option_policy(is_switch(option) ? CLI::MultiOptionPolicy::TakeLast
                                               : CLI::MultiOptionPolicy::TakeAll);
      std::string help(option.help);
      if (!option.env.empty()) help += format(" (environment: {})", option.env);
      o->description(help);
      o->group(ours && option.group != "Hidden" ? std::string(group) : "");
      if (!is_switch(option)) {
        const std::string fallback = default_text(option);
        o->type_name(std::string(option.value));
        if (!fallback.empty() && fallback != "auto") o->default_str(fallback);
      }
      parsed.options[&option] = o;
    }
  }
  return parsed;
}

void check_leftovers(const CLI::App& app, const CommandSpec& spec) {
  for (const std::string& word : app.remaining()) {
    if (word.size() > 1 && word[0] == '-' && word != "--") {
      if (word[1] != '-') {
        throw Error(
            ErrorCode::kInvalidArgument,
            format("there is no option {}; `strata {} --help` lists them", word, spec.name));
      }
      const std::string typed = word.substr(0, word.find('='));
      // "--x" is what unknown_option() writes for x.
      throw Error(ErrorCode::kInvalidArgument,
                  unknown_option(typed.find_first_not_of('-') == 2 ? typed.substr(2) : typed,
                                 spec.command));
    }
    throw Error(
        ErrorCode::kInvalidArgument,
        format("what is \"{}\"? One model is expected; `strata {} --help`", word, spec.name));
  }
}

void read_environment(const Environment& env, Invocation& to) {
  for (const OptionSpec& option : option_table()) {
    if (option.env.empty() || (option.commands & to.command) == 0) continue;
    const auto value = env(std::string(option.env).c_str());
    if (!value) continue;
    assign(option, *value, to.settings);
    to.given.insert(std::string(option.name));
  }
}

void read_command_line(const Parsed& parsed, Invocation& to) {
  if (parsed.model->count() > 0) to.settings.model = parsed.model->results().back();
  for (const auto& [option, o] : parsed.options) {
    if (o->count() == 0) continue;
    if ((option->commands & to.command) == 0) {
      to.warnings.push_back(
          format("--{} has no effect on {}", option->name, spec_of(to.command).name));
      continue;
    }
    const std::vector<std::string>& results = o->results();
    if (auto* list = std::get_if<std::vector<std::string> Settings::*>(&option->place)) {
      (to.settings.**list).clear();
      for (const std::string& each : results) assign(*option, each, to.settings);
    } else {
      assign(*option, results.back(), to.settings);
    }
    to.given.insert(std::string(option->name));
  }
}

}  // namespace

Invocation parse_arguments(const std::vector<std::string>& arguments, const Environment& env) {
  Invocation result;
  if (arguments.size() > 1 && arguments[0] == "help") {
    return parse_arguments({arguments[1], "--help"}, env);
  }
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" ||
      arguments[0] == "help") {
    result.reply = overview();
    return result;
  }
  if (arguments[0] == "--version" || arguments[0] == "-V" || arguments[0] == "version") {
    result.reply = version_text();
    return result;
  }
  const CommandSpec* spec = find_command(arguments[0]);
  if (spec == nullptr) refuse_command(arguments[0]);
  result.command = spec->command;

  CLI::App app(std::string(spec->help), format("strata {}", spec->name));
  app.allow_extras();
  app.set_help_flag();
  const Parsed parsed = add_options(app, *spec);
  app.set_help_flag("-h,--help", "this text")->group("General");
  app.formatter(std::make_shared<HelpFormat>(spec->needs_model ? "FILE" : "[MODEL]"));
  try {
    // CLI11 takes them from the back.
    std::vector<std::string> words(arguments.rbegin(), arguments.rend() - 1);
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    result.reply = app.help();
    return result;
  } catch (const CLI::ParseError& e) {
    throw Error(ErrorCode::kInvalidArgument, e.what());
  }
  // What begins with more dashes than an option has passes for a name of a file.
  if (parsed.model->count() > 0 && parsed.model->results().back().starts_with("---")) {
    throw Error(ErrorCode::kInvalidArgument,
                unknown_option(parsed.model->results().back(), spec->command));
  }
  check_leftovers(app, *spec);

  read_environment(env, result);
  // Its name first, to know where to read; the rest of the command line wins over it.
  for (const auto& [option, o] : parsed.options) {
    if (option->name != "config" || o->count() == 0) continue;
    result.settings.config = o->results().back();
    read_config(result.settings.config, result);
  }
  read_command_line(parsed, result);
  if (spec->needs_model && result.settings.model.empty()) {
    throw Error(ErrorCode::kInvalidArgument, format("strata {} needs a file", spec->name));
  }
  return result;
}

}  // namespace strata::cli
