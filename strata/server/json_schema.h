#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "strata/server/json.h"
#include "strata/text/grammar/grammar.h"

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
// beyond the limits.
text::Grammar json_schema_grammar(const Json& schema, std::string_view path);

// The strings that are valid under a schema of strings alone, written as they are, in a place that
// ends at a tag on a line of its own. So that none looks like that: what a pattern or a format
// matches is one line, and so is what has up to 256 characters at most; longer texts are without
// `<`. nullopt: neither of these keywords holds the strings, also behind a $ref. Errors: as above.
std::optional<text::Grammar> json_schema_line_grammar(const Json& schema, std::string_view path);

}  // namespace strata::server
