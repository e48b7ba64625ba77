#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strata/server/json.h"
#include "strata/text/grammar/grammar.h"
#include "strata/text/grammar/work_budget.h"

namespace strata::server {

// The JSON texts that are valid under a schema, as far as JSON Schema draft 2020-12 is used by the
// strict modes of the large APIs: type (also a list), properties, required, additionalProperties,
// items, prefixItems, minItems, maxItems, enum, const, anyOf, oneOf where the alternatives are seen
// to exclude each other, allOf of one, $ref into the schema with recursion, minLength, maxLength,
// pattern, format, minimum, maximum and their exclusive forms, multipleOf 1.
// Every text of the grammar is valid; some valid texts are left out:
//   - members stand in the order of `properties`; optional ones may be missing; others follow only
//     where additionalProperties allows them in so many words or no properties are given;
//   - white space as in text/grammar/json_text.h; numbers with bounds have no exponent;
//   - a keyword for one type without `type` means that type.
// Errors (RequestError naming the path below `path`): kInvalidArgument for what is no schema or
// matches nothing; kUnsupported naming the keyword for what constrains and is not listed, and
// beyond the limits, of the grammar or of the work for a schema.
text::Grammar json_schema_grammar(const Json& schema, std::string_view path);

// What becomes of a schema that json_schema_grammar() would refuse for what it says.
enum class Otherwise {
  kRefuse,
  kAnyValue,   // it, or the place that references lead to, lets any value pass
  kAnyObject,  // or any object
};

// One of several schemas inside a larger one.
struct SchemaPart {
  std::string pointer;  // where it lies: a JSON pointer
  const Json* schema = nullptr;
  std::string path;  // for messages
  Otherwise otherwise = Otherwise::kRefuse;
  // The strings that are valid under a schema of strings alone, written as they are, in a place
  // that ends at a tag on a line of its own. So that none looks like that: what a pattern or a
  // format matches is one line, and so is what has up to 256 characters at most; longer texts are
  // without `<`.
  bool as_text = false;
};

// What a request's schemas may cost together. Errors of spend(): kUnsupported.
text::WorkBudget schema_budget();

// The rules of each part, in one grammar: what references of several parts lead to is there once.
struct SchemaRules {
  text::Grammar grammar;
  // None for a part as_text whose strings no pattern, format or maxLength holds, also behind a
  // $ref, or that may be refused and would be.
  std::vector<std::optional<text::RuleId>> parts;
};
// `parts` is not empty. Errors: as json_schema_grammar(), and for the limits in any case.
SchemaRules json_schema_rules(const Json& root, std::string_view path,
                              std::span<const SchemaPart> parts, const text::GrammarLimits& limits,
                              text::WorkBudget& budget);

}  // namespace strata::server
