#include "strata/text/grammar/work_budget.h"

#include "strata/base/error.h"

namespace strata::text {

void WorkBudget::fail() const { throw Error(ErrorCode::kUnsupported, too_much_); }

}  // namespace strata::text
