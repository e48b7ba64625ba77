#pragma once

// Internal to json_schema*: the compiler of schemas, whose parts lie in a file each.

#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strata/server/json_schema.h"
#include "strata/server/json_schema_tree.h"
#include "strata/text/grammar/grammar.h"
#include "strata/text/grammar/json_text.h"

namespace strata::server {

class SchemaCompiler {
 public:
  SchemaCompiler(const Json& root, std::string_view path, const text::GrammarLimits& limits,
                 text::WorkBudget& budget)
      : tree_(root, path, budget), grammar_(limits) {}

  // The rule of the schema that a JSON pointer names; it is compiled by run(), so that references
  // may form cycles and nothing recurses deeper than the schema is written. The first is the root.
  text::RuleId rule_of(const std::string& pointer, const Json& schema, std::string path,
                       Otherwise otherwise);
  // A rule of what SchemaPart::as_text means.
  std::optional<text::RuleId> text_rule(const SchemaPart& part);
  text::Grammar run();

 private:
  using Node = text::GrammarNodeId;
  using Nodes = std::vector<Node>;
  struct Todo {
    text::RuleId rule;
    const Json* schema;
    std::string path;
    Otherwise otherwise;
  };
  struct Member {
    Node node;  // name, colon and value
    bool required;
  };

  Node body(const Todo& todo);
  Node compile(const Json& schema, const std::string& path);
  void check_keywords(const Json& schema, const std::string& path) const;
  Node reference(const Json& value, const std::string& path);
  Node combination(const Json& list, std::string_view form, const std::string& path);
  void check_disjoint(const Json& list, const std::string& path);
  Node one_of_values(const Json& schema, const std::string& path);
  Node literal(const Json& value);
  Node of_types(const Json& schema, const std::string& path);

  // json_schema_objects.cpp
  Node object(const Json& schema, const std::string& path);
  void check_required(const Json& schema, const std::string& path);
  Node named(std::string_view name, Node value);
  Node members_in_order(const std::vector<Member>& members, const std::optional<Node>& extra,
                        const std::string& path);
  Node other_name(const SchemaTree::Names& names, const std::string& path);
  Node other_tail(std::span<const std::u32string> names, size_t n, Node quote, Node rest,
                  const std::string& path);

  // json_schema_arrays.cpp
  Node array(const Json& schema, const std::string& path);
  Node list(const Nodes& places, const std::optional<Node>& item, int min, int max,
            const std::string& path);

  // json_schema_scalars.cpp
  std::optional<int> count(const Json& schema, std::string_view name, const std::string& path);
  Node string(const Json& schema, const std::string& path);
  Node characters(const Json& schema, const std::string& path, bool in_json);
  Node plain_character(std::optional<int> max);
  std::optional<Node> text_of(const SchemaPart& part);
  Node number(const Json& schema, const std::string& path, bool integer);

  Node any_value();
  Node any_object();
  // A node as a rule of its own, which takes its depth out of the nodes around it.
  Node as_rule(const std::string& name, Node node);
  Node separator(char c) { return text::json_separator(grammar_, c); }
  const Json* member(const Json& schema, std::string_view name) {
    return tree_.member(schema, name);
  }

  SchemaTree tree_;
  text::Grammar grammar_;
  Otherwise otherwise_ = Otherwise::kRefuse;  // of the rule that is compiled
  std::map<std::string, text::RuleId> rules_;
  std::deque<Todo> todo_;
  std::optional<text::JsonRules> any_;
};

// A name of a schema as paths and messages hold it: long ones are cut.
std::string shown(std::string_view name);

}  // namespace strata::server
