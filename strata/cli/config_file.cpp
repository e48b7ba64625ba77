#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/cli/arguments.h"

namespace strata::cli {
namespace {

using Json = nlohmann::json;

constexpr uintmax_t kMaxTextBytes = uintmax_t{64} << 20;

// One scalar as the command line would write it.
std::string scalar_text(const OptionSpec& option, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return value.dump();
  if (value.is_boolean()) {
    const bool on = value.get<bool>();
    if (is_switch(option)) return on ? "true" : "false";
    return on ? "on" : "off";
  }
  throw Error(ErrorCode::kInvalidArgument,
              format("\"{}\" holds {}, wanted is a number, a string, true or false", option.name,
                     value.type_name()));
}

void take(const OptionSpec& option, const Json& value, Invocation& to) {
  if (!value.is_array()) {
    assign(option, scalar_text(option, value), to.settings);
    return;
  }
  if (!is_list(option)) {
    throw Error(ErrorCode::kInvalidArgument, format("\"{}\" takes no list", option.name));
  }
  for (const Json& item : value) assign(option, scalar_text(option, item), to.settings);
}

void take_all(const Json& config, Invocation& to) {
  if (!config.is_object()) {
    throw Error(ErrorCode::kInvalidArgument, "not a JSON object of options");
  }
  for (const auto& [key, value] : config.items()) {
    if (key == "model") {
      if (!value.is_string()) throw Error(ErrorCode::kInvalidArgument, "\"model\" is no string");
      to.settings.model = value.get<std::string>();
      continue;
    }
    const OptionSpec* option = find_option(key, to.command);
    if (option == nullptr || option->group == "Hidden" || key == "config") {
      throw Error(ErrorCode::kInvalidArgument, key == "config" ? "a config file names no other one"
                                                               : unknown_option(key, to.command));
    }
    if ((option->commands & to.command) == 0) {
      to.warnings.push_back(format("\"{}\" in {} has no effect on {}", key, to.settings.config,
                                   spec_of(to.command).name));
      continue;
    }
    // A list from here takes the place of the environment's.
    if (auto* list = std::get_if<std::vector<std::string> Settings::*>(&option->place)) {
      (to.settings.**list).clear();
    }
    take(*option, value, to);
    to.given.insert(key);
  }
}

}  // namespace

std::string read_text_file(const std::string& path, std::string_view what) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    throw Error(ErrorCode::kNotFound, format("{} {}: no such file", what, path));
  }
  if (std::filesystem::is_directory(status)) {
    throw Error(ErrorCode::kInvalidArgument, format("{} {}: that is a folder", what, path));
  }
  std::ifstream in(path, std::ios::binary);
  std::string text;
  std::vector<char> part(size_t{1} << 16);
  while (in.read(part.data(), static_cast<std::streamsize>(part.size())) || in.gcount() > 0) {
    text.append(part.data(), static_cast<size_t>(in.gcount()));
    if (text.size() > kMaxTextBytes) {
      throw Error(ErrorCode::kInvalidArgument, format("{} {}: above 64 MiB", what, path));
    }
  }
  if (!in.eof()) throw Error(ErrorCode::kIo, format("{} {}: cannot be read", what, path));
  return text;
}

void read_config(const std::string& path, Invocation& to) {
  const std::string text = read_text_file(path, "config file");
  try {
    take_all(Json::parse(text), to);
  } catch (const Json::exception& e) {
    throw Error(ErrorCode::kInvalidArgument, format("config file {}: {}", path, e.what()));
  } catch (Error& e) {
    e.with(format("config file {}", path));
    throw;
  }
}

}  // namespace strata::cli
