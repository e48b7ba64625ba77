#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strata/server/json.h"

namespace strata::server {

// A function that the model may call.
struct Tool {
  std::string name;
  std::string description;
  std::shared_ptr<const Json> parameters;  // its schema, an object; shared with the answer's parser
  bool strict = false;                     // its calls are held to the schema
};
using Tools = std::vector<Tool>;

const Tool* find_tool(const Tools& tools, std::string_view name);

// What the value of a parameter may be, by its schema.
struct ParameterTypes {
  bool string = true;
  bool other = true;     // anything that is no string
  bool boolean = false;  // true and false are meant, however they are spelled
  bool null = false;     // and null
};
// By the schema of the value, inside that of the tool; null: nothing is known. `n_schemas`: adds
// how many it has looked at.
ParameterTypes types_of(const Tool& tool, const Json* schema, size_t* n_schemas = nullptr);
ParameterTypes parameter_types(const Tool& tool, std::string_view parameter);

// The JSON text of a value that was written without quotes, as templates of XML-like calls do: the
// value itself where its types allow it, else a string.
std::string typed_value(std::string_view text, const ParameterTypes& types);

}  // namespace strata::server
