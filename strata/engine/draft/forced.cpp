#include "strata/engine/draft/forced.h"

#include <algorithm>

#include "strata/engine/request.h"

namespace strata::engine {

void ForcedSource::draft(std::span<DraftJob> jobs) {
  for (DraftJob& job : jobs) {
    if (job.n_wanted == 0) continue;
    std::vector<int32_t> ids = job.request->guide.forced();
    ids.resize(std::min(ids.size(), static_cast<size_t>(job.n_wanted)));
    job.guesses = std::move(ids);
  }
}

}  // namespace strata::engine
