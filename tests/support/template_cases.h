#pragma once

#include <ctime>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "strata/text/value.h"

namespace strata::testing {

using Json = nlohmann::ordered_json;

inline std::string read_text_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline std::string golden_template_path(std::string_view name) {
  return std::string(STRATA_SOURCE_DIR "/tests/golden/template/") + std::string(name);
}

inline std::string golden_template(std::string_view name) {
  return read_text_file(golden_template_path(name));
}

// JSON as the front turns it into values: all its text is content. `change` sees each string value
// (not the keys).
inline text::Value to_value(
    const Json& json,
    const std::function<std::string(std::string)>& change = [](std::string s) { return s; }) {
  using text::Value;
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value::boolean(json.get<bool>());
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return Value::integer(json.get<int64_t>());
    case Json::value_t::number_float:
      return Value::number(json.get<double>());
    case Json::value_t::string:
      return Value::content(change(json.get<std::string>()));
    case Json::value_t::array: {
      Value::Items items;
      for (const Json& item : json) items.push_back(to_value(item, change));
      return Value::list(std::move(items));
    }
    case Json::value_t::object: {
      Value::Members members;
      for (const auto& [key, value] : json.items()) {
        members.emplace_back(key, to_value(value, change));
      }
      return Value::map(std::move(members));
    }
    default:
      return {};
  }
}

// The clock of cases.json.
inline std::tm golden_time() {
  std::tm time{};
  time.tm_year = 2024 - 1900;
  time.tm_mon = 6;
  time.tm_mday = 6;
  time.tm_hour = 9;
  time.tm_min = 5;
  time.tm_sec = 3;
  time.tm_wday = 6;
  time.tm_yday = 187;
  return time;
}

}  // namespace strata::testing
