#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "strata/text/value.h"

namespace strata::server {

// Members keep the order of their text: what a template prints and what a schema asks for come in
// the order that the client chose. Looking for a name takes time by their number.
using Json = nlohmann::ordered_json;

// Lists and objects inside each other.
inline constexpr int kMaxJsonDepth = 64;

// Strict: UTF-8 without byte order mark, no duplicate keys, nothing behind the value, numbers that
// a double or a 64-bit integer can hold, at most kMaxJsonDepth levels. Time and stack do not depend
// on the depth of hostile input.
// `what` names the text in errors. Errors: kInvalidArgument (RequestError) that says where, or
// names the path.
Json parse_json(std::string_view text, std::string_view what = "the body");

// Compact; bytes that are not UTF-8 become U+FFFD.
std::string dump(const Json& value);

// What a template reads. All text counts as content: it makes no special tokens.
text::Value to_value(const Json& value);

}  // namespace strata::server
