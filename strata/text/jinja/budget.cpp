#include "strata/text/jinja/budget.h"

#include "strata/base/error.h"
#include "strata/base/format.h"

namespace strata::text {

void TemplateBudget::out_of_steps() const {
  throw Error(ErrorCode::kInvalidArgument,
              format("the template needs more than {} steps", limits_.max_steps));
}

void TemplateBudget::out_of_bytes() const {
  throw Error(
      ErrorCode::kInvalidArgument,
      format("the template makes more than {} bytes of text and lists, or {} at the same time",
             limits_.max_made_bytes, limits_.max_held_bytes));
}

}  // namespace strata::text
