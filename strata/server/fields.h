#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "strata/server/json.h"

namespace strata::server {

// Reads the members of a JSON object with strict types. A member that is null counts as absent.
// Errors: kInvalidArgument (RequestError) naming the path. `value` outlives it.
class Fields {
 public:
  // Refuses a `value` that is no object. `path` is empty for the body itself.
  Fields(const Json& value, std::string path);

  // The path of a member, for messages.
  std::string path(std::string_view name) const;
  // Null if absent.
  const Json* find(std::string_view name) const;

  std::optional<bool> boolean(std::string_view name) const;
  // 5.0 is no integer.
  std::optional<int64_t> integer(std::string_view name, int64_t low, int64_t high) const;
  std::optional<double> number(std::string_view name, double low, double high) const;
  std::optional<std::string> string(std::string_view name) const;
  const Json* object(std::string_view name) const;
  const Json* array(std::string_view name, size_t max_size) const;

 private:
  const Json& value_;
  std::string path_;
};

// "a string", "a list", ...: what a value is, for messages.
std::string_view kind_of(const Json& value);

}  // namespace strata::server
