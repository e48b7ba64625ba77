#include "strata/engine/draft/mtp.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "strata/base/error.h"
#include "strata/engine/request.h"
#include "strata/engine/step.h"

namespace strata::engine {

// The draft layer and, for these outputs, its head and the sampler, on the step that is laid out.
void MtpSource::run(std::span<const int32_t> sources, std::span<const int32_t> outputs) {
  model::Model& model = instance_.model();
  model.inputs().set_sources(sources);
  model.inputs().set_outputs(outputs);
  model.inputs().upload();
  model.draft();
  if (!outputs.empty()) {
    model.draft_head();
    sampler_.run(instance_.stream(), model.logits(), model.inputs().n_out_rows());
  }
  instance_.wait("drafts");
}

// Chains with a guess that is worth a row go on.
void MtpSource::take_guesses(std::vector<Chain>& chains) const {
  size_t next = 0;
  std::erase_if(chains, [&](const Chain& chain) {
    const size_t i = next++;
    const int32_t id = sampler_.chosen()[i];
    if (id < 0 || (min_logprob_ && sampler_.logprobs()[i].chosen < *min_logprob_)) return true;
    chain.job->guesses.push_back(id);
    return static_cast<int>(chain.job->guesses.size()) >= chain.job->n_wanted;
  });
}

// The cells of what the trunk has kept, and the first guess of each chain.
std::vector<MtpSource::Chain> MtpSource::keep_up(std::span<DraftJob> jobs) {
  model::Model& model = instance_.model();
  model.begin_step();
  sampler_.begin();
  std::vector<int32_t> sources, outputs;
  std::vector<Chain> chains;
  for (DraftJob& job : jobs) {
    Drafting& drafting = job.request->drafting;
    if (!drafting.follows) continue;
    if (!drafting.cells) {
      drafting.cells = std::make_unique<model::SessionState>(*model.draft_states(),
                                                             job.request->session->max_tokens());
    }
    model.add(*drafting.cells, job.next);
    for (size_t i = 0; i < job.next.size(); ++i) {
      sources.push_back(job.first_row + static_cast<int32_t>(i));
    }
    if (job.n_wanted == 0) continue;
    outputs.push_back(static_cast<int32_t>(sources.size()) - 1);
    sampler_.add(*job.request, {}, min_logprob_ ? 0 : -1);
    chains.push_back({&job, outputs.back()});
  }
  if (sources.empty()) return {};
  run(sources, outputs);
  for (DraftJob& job : jobs) {
    Drafting& drafting = job.request->drafting;
    if (drafting.follows) drafting.cells->commit(drafting.cells->n_pending());
  }
  take_guesses(chains);
  return chains;
}

void MtpSource::go_on(std::vector<Chain>& chains) {
  model::Model& model = instance_.model();
  model.begin_step();
  sampler_.begin();
  std::vector<int32_t> sources, outputs;
  for (Chain& chain : chains) {
    const std::vector<int32_t>& guesses = chain.job->guesses;
    model::SessionState& cells = *chain.job->request->drafting.cells;
    const std::span<const int32_t> last(&guesses.back(), 1);
    if (cells.n_pending() > 0) {
      model.add_behind(cells, last);
    } else {
      model.add(cells, last);
    }
    sources.push_back(chain.row);
    chain.row = static_cast<int32_t>(outputs.size());
    outputs.push_back(chain.row);
    sampler_.add(*chain.job->request, guesses, min_logprob_ ? 0 : -1);
  }
  run(sources, outputs);
  take_guesses(chains);
}

void MtpSource::draft(std::span<DraftJob> jobs) {
  const auto take_back = [&] {
    for (DraftJob& job : jobs) {
      const auto& cells = job.request->drafting.cells;
      if (cells && cells->n_pending() > 0) cells->commit(0);
    }
  };
  try {
    Clock::TimePoint begun = clock_.now();
    const auto lap = [&] {
      const Clock::TimePoint now = clock_.now();
      return std::chrono::duration<double, std::milli>(now - std::exchange(begun, now)).count();
    };
    const bool only_answers = std::ranges::none_of(jobs, &DraftJob::reads_prompt);
    const bool asked =
        std::ranges::any_of(jobs, [](const DraftJob& job) { return job.n_wanted > 0; });
    std::vector<Chain> chains = keep_up(jobs);
    const double first_ms = lap();
    if (only_answers && asked) costs_.add_first_draft(first_ms);
    while (!chains.empty()) {
      go_on(chains);
      costs_.add_next_draft(lap());
    }
  } catch (...) {
    const std::string why = settle_failure(instance_, "drafts");
    take_back();
    throw Error(ErrorCode::kDevice, why);
  }
  take_back();
}

}  // namespace strata::engine
