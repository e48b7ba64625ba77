#include "strata/text/jinja/arguments.h"

#include <algorithm>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/jinja/numbers.h"
#include "strata/text/jinja/operators.h"

namespace strata::text {

BoundArguments::BoundArguments(std::string_view callee, const CallArguments& given,
                               std::initializer_list<std::string_view> parameters,
                               size_t n_optional)
    : callee_(callee), parameters_(parameters), values_(parameters.size(), nullptr) {
  if (given.positional.size() > parameters_.size()) {
    throw Error(ErrorCode::kInvalidArgument, format("{} takes at most {} arguments, not {}", callee,
                                                    parameters_.size(), given.positional.size()));
  }
  for (size_t i = 0; i < given.positional.size(); ++i) values_[i] = &given.positional[i];
  for (const auto& [name, value] : given.named) {
    const auto found = std::find(parameters_.begin(), parameters_.end(), name);
    if (found == parameters_.end()) {
      throw Error(ErrorCode::kInvalidArgument, format("{} has no argument '{}'", callee, name));
    }
    const Value*& place = values_[static_cast<size_t>(found - parameters_.begin())];
    if (place != nullptr) {
      throw Error(ErrorCode::kInvalidArgument,
                  format("{} got its argument '{}' twice", callee, name));
    }
    place = &value;
  }
  STRATA_CHECK(n_optional <= parameters_.size());
  for (size_t i = 0; i < parameters_.size() - n_optional; ++i) {
    if (values_[i] == nullptr) {
      throw Error(ErrorCode::kInvalidArgument,
                  format("{} needs the argument '{}'", callee, parameters_[i]));
    }
  }
}

const Value& BoundArguments::operator[](size_t i) const {
  STRATA_CHECK(values_[i] != nullptr);
  return *values_[i];
}

bool BoundArguments::flag(size_t i, bool otherwise) const {
  return values_[i] == nullptr ? otherwise : truthy(*values_[i]);
}

int64_t BoundArguments::integer(size_t i, int64_t otherwise) const {
  if (values_[i] == nullptr) return otherwise;
  const std::optional<int64_t> value = to_integer(*values_[i]);
  if (!value) fail(i, "an integer");
  return *value;
}

const Value* BoundArguments::given(size_t i) const {
  return values_[i] == nullptr || values_[i]->is_null() ? nullptr : values_[i];
}

const MarkedText& BoundArguments::text(size_t i) const {
  STRATA_CHECK(values_[i] != nullptr);
  if (!values_[i]->is_string()) fail(i, "a string");
  return values_[i]->as_text();
}

void BoundArguments::fail(size_t i, std::string_view needed) const {
  if (values_[i]->is_undefined()) throw Error(ErrorCode::kInvalidArgument, values_[i]->reason());
  throw Error(ErrorCode::kInvalidArgument, format("{}: the argument '{}' is {}, not a {}", callee_,
                                                  parameters_[i], needed, type_name(*values_[i])));
}

}  // namespace strata::text
