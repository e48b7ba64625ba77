#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "strata/text/jinja/percent_format.h"
#include "strata/text/value.h"

namespace strata::text {

// The arguments of a built-in filter, test, function or method, put to its parameters by position
// and name. Errors: kInvalidArgument naming the callee, for too many, unknown and missing ones and
// for a wrong type.
class BoundArguments {
 public:
  // The last `n_optional` parameters may be left out.
  BoundArguments(std::string_view callee, const CallArguments& given,
                 std::initializer_list<std::string_view> parameters, size_t n_optional = 0);

  bool has(size_t i) const { return values_[i] != nullptr; }
  const Value& operator[](size_t i) const;

  // The argument, or what stands in for one that was left out.
  bool flag(size_t i, bool otherwise) const;
  int64_t integer(size_t i, int64_t otherwise) const;
  // Null counts as left out.
  const Value* given(size_t i) const;
  // Must be a string.
  const MarkedText& text(size_t i) const;

 private:
  [[noreturn]] void fail(size_t i, std::string_view needed) const;

  std::string_view callee_;
  std::vector<std::string_view> parameters_;
  std::vector<const Value*> values_;
};

}  // namespace strata::text
