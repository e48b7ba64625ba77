#pragma once

#include <span>
#include <string>
#include <string_view>

#include "strata/server/json.h"

namespace strata::server {

// What an endpoint does with a field of its body.
enum class FieldUse {
  kTaken,
  kRefused,  // a 400 that names it, unless it says no: null, false, "", [], {}
  kIgnored,  // changes nothing that this server could do
};

struct FieldRow {
  std::string_view name;
  std::string_view type;  // of JSON Schema, several with | between
  FieldUse use = FieldUse::kTaken;
  std::string_view note;  // range, default, meaning
};

struct EndpointRow {
  std::string_view method;
  std::string_view path;
  std::string_view summary;
  bool needs_key = true;
  std::span<const FieldRow> fields;         // its own
  std::span<const FieldRow> shared_fields;  // that others have, too
};

// Every endpoint and every field: /openapi.json and docs/api-fields.md are made of it, and a test
// asks the server whether it is true.
std::span<const EndpointRow> endpoint_table();

// An OpenAPI 3.1 document.
Json openapi(std::string_view version);
// The page docs/api-fields.md.
std::string fields_page();

}  // namespace strata::server
