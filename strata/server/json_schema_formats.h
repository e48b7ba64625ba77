#pragma once

#include <optional>
#include <string_view>

namespace strata::server {

// A regular expression for a `format` of JSON Schema; each text of it is valid under the strict
// reading of the format, not each valid text is one of it: no 29 February, ipv6 without ::.
// nullopt: not known.
// Source: JSON Schema Validation 2020-12, section 7.3.
std::optional<std::string_view> pattern_of_format(std::string_view format);

}  // namespace strata::server
