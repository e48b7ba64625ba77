#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "strata/server/json.h"
#include "strata/text/grammar/work_budget.h"

namespace strata::server {

// The types of JSON Schema as bits; a number may be an integer.
enum SchemaType : unsigned {
  kNull = 1,
  kBoolean = 2,
  kObject = 4,
  kArray = 8,
  kString = 16,
  kInteger = 32,
  kFraction = 64,  // a number that is no integer
};
inline constexpr unsigned kNumber = kInteger | kFraction;
inline constexpr unsigned kAnyType = 127;

// Of a value.
unsigned type_of(const Json& value);

// What a schema says where it is looked at: its keywords, where its references lead, what it asks
// for. A schema comes from a request and may have any number of names and of references among them,
// so a name is found by an index, and what is done for each pair of things comes out of a budget.
// Errors of all: RequestError, and kUnsupported when the budget is used up. One thread.
class SchemaTree {
 public:
  using Values = std::vector<const Json*>;
  using Names = std::set<std::string_view>;

  // `path`: of the root, for messages. All outlive this, and the root does not change.
  SchemaTree(const Json& root, std::string_view path, text::WorkBudget& budget)
      : root_(root), path_(path), budget_(budget) {}

  const Json& root() const { return root_; }
  text::WorkBudget& budget() const { return budget_; }

  // A member of an object, or null.
  const Json* member(const Json& value, std::string_view name);
  // Where the value of a $ref leads: a place in the root.
  const Json& resolve(const Json& reference, const std::string& path);
  // Of a place in the root, for messages.
  std::string path_of(const std::string& pointer) const;

  // The types that its texts are made of: those that its keywords speak of if it names none.
  unsigned types_of(const Json& schema, const std::string& path);
  // Whether it has a keyword that says something about one type.
  bool speaks_of_types(const Json& schema);
  // Of enum or const.
  std::optional<Values> values_of(const Json& schema);
  // The strings of `required`.
  const Names& required(const Json& schema);
  // Whether no value can match both: true only where that is plain to see.
  bool disjoint(const Json& a, const Json& b, const std::string& path, int depth = 0);

 private:
  using Index = std::unordered_map<std::string_view, const Json*>;

  const Json* step(const Json& at, const std::string& token);
  unsigned passed_types(const Json& schema, const std::string& path);
  bool discriminated(const Json& a, const Json& b, const std::string& path, int depth);
  bool same(const Json& a, const Json& b);

  const Json& root_;
  const std::string path_;
  text::WorkBudget& budget_;
  std::unordered_map<const Json*, Index> indices_;  // of large objects
  std::unordered_map<const Json*, Names> required_;
};

// A keyword that says something about one type, and what that is.
struct TypeKeyword {
  std::string_view name;
  unsigned type;
};
inline constexpr TypeKeyword kTypeKeywords[] = {{"properties", kObject},
                                                {"required", kObject},
                                                {"additionalProperties", kObject},
                                                {"items", kArray},
                                                {"prefixItems", kArray},
                                                {"minItems", kArray},
                                                {"maxItems", kArray},
                                                {"uniqueItems", kArray},
                                                {"minLength", kString},
                                                {"maxLength", kString},
                                                {"pattern", kString},
                                                {"format", kString},
                                                {"minimum", kNumber},
                                                {"maximum", kNumber},
                                                {"exclusiveMinimum", kNumber},
                                                {"exclusiveMaximum", kNumber},
                                                {"multipleOf", kNumber}};

}  // namespace strata::server
