#include <algorithm>
#include <nlohmann/json.hpp>

#include "strata/base/format.h"
#include "strata/server/fields.h"
#include "strata/server/json_schema_compiler.h"
#include "strata/server/request_error.h"

namespace strata::server {

using text::kUnbounded;

text::GrammarNodeId SchemaCompiler::array(const Json& schema, const std::string& path) {
  const Fields fields(schema, path);
  if (fields.boolean("uniqueItems").value_or(false)) {
    unsupported_field(path + ".uniqueItems", "is not supported");
  }
  const int min = count(schema, "minItems", path).value_or(0);
  const std::optional<int> max = count(schema, "maxItems", path);
  if (max && *max < min) refuse_field(path, "maxItems is below minItems");
  const Json* const items = member(schema, "items");
  const Json* const prefix = member(schema, "prefixItems");
  if (items != nullptr && items->is_array()) {
    unsupported_field(path + ".items", "a list is not supported; use prefixItems");
  }
  if (prefix != nullptr && !prefix->is_array()) {
    refuse_field(path + ".prefixItems", "must be a list of schemas");
  }
  Nodes places;
  for (size_t i = 0; prefix != nullptr && i < prefix->size(); ++i) {
    if (max && static_cast<int>(i) >= *max) break;
    places.push_back(as_rule(format("{} [{}]", path, i),
                             compile((*prefix)[i], format("{}.prefixItems[{}]", path, i))));
  }
  std::optional<Node> item;
  const bool none = items != nullptr && items->is_boolean() && !items->get<bool>();
  if (items == nullptr && places.empty()) item = any_value();
  if (items != nullptr && !none) item = compile(*items, path + ".items");
  if (item) item = as_rule(path + " []", *item);
  if (!item && static_cast<int>(places.size()) < min) {
    if (items != nullptr) refuse_field(path, "minItems asks for more than there can be");
    item = any_value();
  }
  return as_rule(path, list(places, item, min, max ? *max : kUnbounded, path));
}

text::GrammarNodeId SchemaCompiler::list(const Nodes& places, const std::optional<Node>& item,
                                         int min, int max, const std::string& path) {
  const Node close = grammar_.literal("]");
  const Node open = grammar_.literal("[");
  const auto n_places = static_cast<int>(places.size());
  const int left = max == kUnbounded ? kUnbounded : max - n_places;
  Node behind = close;
  if (item && left != 0) {
    const Node more = grammar_.sequence({separator(','), *item});
    if (n_places == 0) {
      const Node some =
          grammar_.sequence({*item, grammar_.repeat(more, std::max(min - 1, 0),
                                                    left == kUnbounded ? kUnbounded : left - 1)});
      return grammar_.sequence({open, min == 0 ? grammar_.optional(some) : some, close});
    }
    behind = grammar_.sequence({grammar_.repeat(more, std::max(min - n_places, 0), left), close});
  }
  for (int i = n_places - 1; i >= 0; --i) {
    Node here = grammar_.sequence({places[static_cast<size_t>(i)], behind});
    if (i > 0) here = grammar_.sequence({separator(','), here});
    behind = i < min ? here : grammar_.alternatives({here, close});
    behind = as_rule(format("{} [{}]...", path, i), behind);
  }
  return grammar_.sequence({open, behind});
}

}  // namespace strata::server
