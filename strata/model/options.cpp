#include "strata/model/options.h"

#include <algorithm>

#include "strata/base/error.h"
#include "strata/base/format.h"

namespace strata::model {
namespace {

constexpr int64_t kMaxRows = 1 << 20, kMaxSlots = 1 << 16;
constexpr int64_t kMaxTokens = int64_t{1} << 30;  // of all slots
constexpr double kMaxFactor = 1024;

void require(const char* name, int64_t value, int64_t max) {
  if (value >= 1 && value <= max) return;
  throw Error(ErrorCode::kInvalidArgument,
              format("{} is {}, not between 1 and {}", name, value, max));
}

}  // namespace

void require_sizes(const ModelOptions& options) {
  require("--prefill", options.chunk, kMaxRows);
  require("the rows of logits", options.max_out, kMaxRows);
  require("the window", options.window, kMaxRows);
  require("--batch", options.slots, kMaxSlots);
  require("--max-context", options.max_context, kMaxTokens / options.slots);
}

int64_t ContextRange::scaled() const {
  if (!(yarn_factor > 1)) return trained;
  return std::max(trained, static_cast<int64_t>(static_cast<double>(yarn_context) * yarn_factor));
}

ContextRange resolve_context(const ModelOptions& options, const ContextRange& of_file,
                             const std::string& model) {
  ContextRange range = of_file;
  if (options.yarn_factor > 0) {
    if (!(options.yarn_factor >= 1 && options.yarn_factor <= kMaxFactor)) {
      throw Error(ErrorCode::kInvalidArgument, format("a rope scale of {} is not between 1 and {}",
                                                      options.yarn_factor, kMaxFactor));
    }
    range.yarn_factor = options.yarn_factor;
    range.yarn_context = options.yarn_context > 0 ? options.yarn_context : range.trained;
  }
  if (options.max_context > range.trained && range.yarn_factor <= 1) {
    throw Error(ErrorCode::kInvalidArgument,
                format("a context of {} tokens is asked for, {} was trained on {}: lower "
                       "--max-context, or extend it with --rope-scaling yarn --rope-scale {}",
                       options.max_context, model, range.trained,
                       (options.max_context + range.trained - 1) / range.trained));
  }
  return range;
}

}  // namespace strata::model
