#include "strata/server/fields.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "strata/base/format.h"
#include "strata/server/request_error.h"

namespace strata::server {

std::string_view kind_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::number_integer:
      return value.get<int64_t>() < 0 ? "a negative integer" : "an integer";
    case Json::value_t::number_unsigned:
      return "an integer";
    case Json::value_t::number_float:
      // Whole numbers of more than 64 bits come as these.
      return std::abs(value.get<double>()) >= 0x1p63 ? "a number of more than 64 bits"
                                                     : "a number with a fraction or exponent";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::array:
      return "a list";
    default:
      return "an object";
  }
}

Fields::Fields(const Json& value, std::string path) : value_(value), path_(std::move(path)) {
  if (value_.is_object()) return;
  if (path_.empty())
    throw RequestError(ErrorCode::kInvalidArgument,
                       format("the body must be a JSON object, not {}", kind_of(value_)), "");
  refuse_field(path_, format("must be an object, not {}", kind_of(value_)));
}

std::string Fields::path(std::string_view name) const {
  return path_.empty() ? std::string(name) : format("{}.{}", path_, name);
}

const Json* Fields::find(std::string_view name) const {
  const auto it = value_.find(name);
  return it == value_.end() || it->is_null() ? nullptr : &*it;
}

std::optional<bool> Fields::boolean(std::string_view name) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean())
    refuse_field(path(name), format("must be true or false, not {}", kind_of(*value)));
  return value->get<bool>();
}

std::optional<int64_t> Fields::integer(std::string_view name, int64_t low, int64_t high) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer())
    refuse_field(path(name), format("must be an integer, not {}", kind_of(*value)));
  const bool too_large =
      value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  if (too_large || value->get<int64_t>() < low || value->get<int64_t>() > high)
    refuse_field(path(name), format("must be from {} to {}", low, high));
  return value->get<int64_t>();
}

std::optional<double> Fields::number(std::string_view name, double low, double high) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number())
    refuse_field(path(name), format("must be a number, not {}", kind_of(*value)));
  const double number = value->get<double>();
  if (!(number >= low && number <= high))
    refuse_field(path(name), format("must be from {} to {}", low, high));
  return number;
}

std::optional<std::string> Fields::string(std::string_view name) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string())
    refuse_field(path(name), format("must be a string, not {}", kind_of(*value)));
  return value->get<std::string>();
}

const Json* Fields::object(std::string_view name) const {
  const Json* value = find(name);
  if (value != nullptr && !value->is_object())
    refuse_field(path(name), format("must be an object, not {}", kind_of(*value)));
  return value;
}

const Json* Fields::array(std::string_view name, size_t max_size) const {
  const Json* value = find(name);
  if (value == nullptr) return nullptr;
  if (!value->is_array())
    refuse_field(path(name), format("must be a list, not {}", kind_of(*value)));
  if (value->size() > max_size)
    refuse_field(path(name),
                 format("has {} members, at most {} are taken", value->size(), max_size));
  return value;
}

}  // namespace strata::server
