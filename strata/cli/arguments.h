#pragma once

#include <cstdio>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "strata/cli/options.h"
#include "strata/cli/settings.h"

namespace strata::cli {

// What was asked for.
struct Invocation {
  Command command = kServe;
  Settings settings;
  std::set<std::string, std::less<>> given;  // names of options that did not keep their default
  std::vector<std::string> warnings;         // options of other commands
  std::string reply;                         // not empty: --help or --version; print and leave
};

// A variable of the environment.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// The environment, then the config file, then the command line; arguments without the program's
// name. Errors: kInvalidArgument naming the option and what it takes; kNotFound, kIo for the config
// file.
Invocation parse_arguments(const std::vector<std::string>& arguments, const Environment& env);

// Reads a config file into the settings. Errors: kInvalidArgument naming file and key; kNotFound.
void read_config(const std::string& path, Invocation& to);

// A whole file of at most 64 MiB; `what` names it in errors: kNotFound, kIo, kInvalidArgument.
std::string read_text_file(const std::string& path, std::string_view what);
// The same of what is open already, such as stdin.
std::string read_text_stream(std::FILE* stream, std::string_view what);
// Errors: kInvalidArgument naming `what` and the place, for text that is no UTF-8.
void check_utf8(std::string_view text, std::string_view what);

}  // namespace strata::cli
