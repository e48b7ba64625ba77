#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "strata/base/format.h"
#include "strata/server/fields.h"
#include "strata/server/json_schema_compiler.h"
#include "strata/server/request_error.h"
#include "strata/text/code_points.h"

namespace strata::server {

using text::CodePointRanges;
using text::kUnbounded;

text::GrammarNodeId SchemaCompiler::object(const Json& schema, const std::string& path) {
  const Fields fields(schema, path);
  const Json* const properties = fields.object("properties");
  const Json* const extra = fields.find("additionalProperties");
  check_required(schema, path);
  const SchemaTree::Names& required = tree_.required(schema);
  if ((properties == nullptr || properties->empty()) && required.empty() && extra == nullptr) {
    return any_object();
  }
  const bool open = extra != nullptr && !(extra->is_boolean() && !extra->get<bool>());
  std::vector<Member> members;
  SchemaTree::Names names;
  if (properties != nullptr) {
    for (const auto& [name, value] : properties->get_ref<const Json::object_t&>()) {
      const bool is_required = required.contains(name);
      if (!is_required && value.is_boolean() && !value.get<bool>()) continue;
      members.push_back(
          {named(name, compile(value, path + ".properties." + shown(name))), is_required});
      names.insert(name);
    }
  }
  std::optional<Node> extra_value;
  if (open) extra_value = as_rule(path + " +", compile(*extra, path + ".additionalProperties"));
  for (const std::string_view name : required) {
    if (names.contains(name)) continue;
    if (extra != nullptr && !open) {
      refuse_field(path + ".required", "names a property that additionalProperties excludes");
    }
    members.push_back({named(name, extra_value ? *extra_value : any_value()), true});
    names.insert(name);
  }
  std::optional<Node> extra_member;
  if (open) {
    extra_member =
        as_rule(path + " + member",
                grammar_.sequence({other_name(names, path), separator(':'), *extra_value}));
  }
  return members_in_order(members, extra_member, path);
}

void SchemaCompiler::check_required(const Json& schema, const std::string& path) {
  const Json* const required = member(schema, "required");
  if (required == nullptr) return;
  if (!required->is_array()) refuse_field(path + ".required", "must be a list of names");
  for (const Json& name : *required) {
    if (!name.is_string()) refuse_field(path + ".required", "must be a list of names");
  }
}

text::GrammarNodeId SchemaCompiler::named(std::string_view name, Node value) {
  return grammar_.sequence(
      {grammar_.literal(dump(Json(std::string(name)))), separator(':'), value});
}

// From the last member to the first: what may follow behind a member that is there, a rule each,
// and what may follow while none was.
text::GrammarNodeId SchemaCompiler::members_in_order(const std::vector<Member>& members,
                                                     const std::optional<Node>& extra,
                                                     const std::string& path) {
  const Node close = grammar_.literal("}");
  Node behind = close;
  Node first = close;
  if (extra) {
    const Node more = grammar_.sequence({separator(','), *extra});
    behind =
        as_rule(path + " ...", grammar_.sequence({grammar_.repeat(more, 0, kUnbounded), close}));
    first = grammar_.alternatives({grammar_.sequence({*extra, behind}), close});
  }
  for (size_t i = members.size(); i-- > 0;) {
    const Member& it = members[i];
    const Node here = grammar_.sequence({it.node, behind});
    first = it.required ? here : grammar_.alternatives({here, first});
    first = as_rule(format("{} {}", path, i), first);
    const Node next = grammar_.sequence({separator(','), it.node});
    behind = as_rule(format("{} ,{}", path, i),
                     grammar_.sequence({it.required ? next : grammar_.optional(next), behind}));
  }
  return as_rule(path, grammar_.sequence({grammar_.literal("{"), first}));
}

// A string that is none of the names, each character written in one way.
text::GrammarNodeId SchemaCompiler::other_name(const SchemaTree::Names& names,
                                               const std::string& path) {
  const CodePointRanges all = text::normalised({{0, text::kLastCodePoint}});
  const Node quote = grammar_.literal("\"");
  const Node rest = grammar_.sequence(
      {grammar_.repeat(text::json_characters(grammar_, all), 0, kUnbounded), quote});
  std::vector<std::u32string> points;
  for (const std::string_view name : names) {
    std::u32string text;
    for (size_t at = 0; at < name.size();) {
      const text::CodePoint c = text::code_point_at(name, at);
      text += c.value;
      at += c.length;
    }
    points.push_back(std::move(text));
  }
  std::sort(points.begin(), points.end());
  return grammar_.sequence({quote, other_tail(points, 0, quote, rest, path)});
}

// `names` are those that agree in their first n characters, sorted.
text::GrammarNodeId SchemaCompiler::other_tail(std::span<const std::u32string> names, size_t n,
                                               Node quote, Node rest, const std::string& path) {
  constexpr size_t kMaxName = 200;
  if (n > kMaxName) {
    unsupported_field(path, format("additionalProperties beside a name of more than {} "
                                   "characters is not supported",
                                   kMaxName));
  }
  Nodes ways;
  CodePointRanges next;
  size_t i = 0;
  if (!names.empty() && names[0].size() == n) {
    ++i;
  } else {
    ways.push_back(quote);
  }
  while (i < names.size()) {
    const char32_t c = names[i][n];
    const size_t begin = i;
    while (i < names.size() && names[i][n] == c) ++i;
    next.push_back({c, c});
    ways.push_back(
        grammar_.sequence({text::json_characters(grammar_, {{c, c}}),
                           other_tail(names.subspan(begin, i - begin), n + 1, quote, rest, path)}));
  }
  const CodePointRanges others = text::complement(text::normalised(next));
  ways.push_back(grammar_.sequence({text::json_characters(grammar_, others), rest}));
  return as_rule(format("{} +{}", path, n), grammar_.alternatives(ways));
}

}  // namespace strata::server
