#include <cerrno>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <vector>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/cli/arguments.h"
#include "strata/text/utf8.h"

namespace strata::cli {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxTextBytes = size_t{64} << 20;

std::string why(int error) { return std::generic_category().message(error); }

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
    if (key.starts_with('-')) {
      throw Error(ErrorCode::kInvalidArgument,
                  format("\"{}\": keys are written without dashes in front", key));
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
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> in(std::fopen(path.c_str(), "rb"),
                                                           std::fclose);
  if (in == nullptr) throw Error(ErrorCode::kIo, format("{} {}: {}", what, path, why(errno)));
  return read_text_stream(in.get(), format("{} {}", what, path));
}

std::string read_text_stream(std::FILE* stream, std::string_view what) {
  std::string text;
  std::vector<char> part(size_t{1} << 16);
  while (const size_t n = std::fread(part.data(), 1, part.size(), stream)) {
    text.append(part.data(), n);
    if (text.size() > kMaxTextBytes) {
      throw Error(ErrorCode::kInvalidArgument, format("{}: above 64 MiB", what));
    }
  }
  if (std::ferror(stream) != 0) throw Error(ErrorCode::kIo, format("{}: {}", what, why(errno)));
  return text;
}

void check_utf8(std::string_view text, std::string_view what) {
  const size_t valid = text::valid_utf8_prefix(text);
  if (valid == text.size()) return;
  throw Error(ErrorCode::kInvalidArgument, format("{} is no UTF-8: byte 0x{:02x} at {}", what,
                                                  static_cast<unsigned char>(text[valid]), valid));
}

namespace {

// Of two equal keys a reader keeps one, which may not be the one that was meant.
Json parse_without_repeated_keys(const std::string& text) {
  std::vector<std::set<std::string>> seen;  // of each object that is open
  const auto check = [&seen](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) {
      seen.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      seen.pop_back();
    } else if (event == Json::parse_event_t::key &&
               !seen.back().insert(parsed.get<std::string>()).second) {
      throw Error(ErrorCode::kInvalidArgument,
                  format("\"{}\" is given twice", parsed.get<std::string>()));
    }
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::exception& e) {
    // Its text begins with a name of the library: "[json.exception.parse_error.101] parse error
    // at".
    const std::string_view what = e.what();
    const size_t begin = what.find("] ");
    throw Error(
        ErrorCode::kInvalidArgument,
        format("not valid JSON: {}", what.substr(begin == std::string_view::npos ? 0 : begin + 2)));
  }
}

}  // namespace

void read_config(const std::string& path, Invocation& to) {
  const std::string text = read_text_file(path, "config file");
  try {
    take_all(parse_without_repeated_keys(text), to);
  } catch (Error& e) {
    e.with(format("config file {}", path));
    throw;
  }
}

}  // namespace strata::cli
