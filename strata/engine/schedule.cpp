#include "strata/engine/schedule.h"

#include <algorithm>
#include <utility>

namespace strata::engine {

StepPlan plan_step(std::span<const std::unique_ptr<Request>> running, size_t room) {
  StepPlan plan;
  for (const bool decoding : {true, false}) {
    for (const std::unique_ptr<Request>& request : running) {
      if (request->decoding() != decoding || room == 0) continue;
      StepPart part{.request = request.get()};
      if (decoding) {
        part.ids = {request->answer.back()};
        part.samples = true;
      } else {
        const std::vector<int32_t>& ids = request->submit.ids;
        const size_t n = std::min(room, request->n_waiting());
        const auto first = ids.begin() + static_cast<std::ptrdiff_t>(request->n_read);
        part.ids.assign(first, first + static_cast<std::ptrdiff_t>(n));
        part.samples = request->n_read + n == ids.size();
      }
      room -= part.ids.size();
      plan.push_back(std::move(part));
    }
  }
  return plan;
}

}  // namespace strata::engine
