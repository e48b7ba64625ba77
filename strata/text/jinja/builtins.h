#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "strata/text/jinja/objects.h"
#include "strata/text/value.h"

namespace strata::text {

class TemplateRun;

using TemplateFilter = Value (*)(TemplateRun& run, const Value& input,
                                 const CallArguments& arguments);
using TemplateTest = bool (*)(TemplateRun& run, const Value& input, const CallArguments& arguments);

struct NamedFilter {
  std::string_view name;
  TemplateFilter function;
};
struct NamedTest {
  std::string_view name;
  TemplateTest function;
};
struct NamedFunction {
  std::string_view name;
  TemplateFunction function;
};

// Null if there is none of that name.
TemplateFilter find_filter(std::string_view name);
TemplateTest find_test(std::string_view name);
TemplateFunction find_function(std::string_view name);

// The tables behind find_filter, by what the filters work on. Sorted by name.
std::span<const NamedFilter> text_filters();
std::span<const NamedFilter> list_filters();
std::span<const NamedFilter> value_filters();

// Methods of strings, lists and maps. Those that would change a list or map are there, too, and
// refuse to be called.
bool has_method(const Value& self, std::string_view name);
// A method that would change the value.
bool changes_value(const Value& self, std::string_view name);
Value call_method(TemplateRun& run, const Value& self, std::string_view name,
                  const CallArguments& arguments);
// One of the above for strings. Empty if there is no such method.
std::optional<Value> call_text_method(TemplateRun& run, const Value& self, std::string_view name,
                                      const CallArguments& arguments);
bool has_text_method(std::string_view name);

}  // namespace strata::text
