#include "strata/engine/drafter.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/engine/draft/forced.h"
#include "strata/engine/draft/lookup.h"
#include "strata/engine/draft/mtp.h"

namespace strata::engine {
namespace {

// Tokens that have to agree for a lookup to be better than what the draft layer knows, and at all.
constexpr size_t kSureMatch = 8, kAnyMatch = 3;
// Without a guess that pays the draft layer stops reading along.
constexpr int kIdleSteps = 3;
constexpr int kMaxFailures = 3;

// The guesses of a decoding part.
std::span<const int32_t> guesses_of(const StepPart& part) { return std::span(part.ids).subspan(1); }

void count(wire::Drafts& drafts, size_t n, size_t n_right) {
  ++drafts.passes;
  if (drafts.guessed.size() < n) drafts.guessed.resize(n), drafts.right.resize(n);
  for (size_t i = 0; i < n; ++i) ++drafts.guessed[i];
  for (size_t i = 0; i < n_right; ++i) ++drafts.right[i];
}

}  // namespace

Drafter::Drafter(model::Instance& instance, Sampler& sampler, const DraftOptions& options,
                 const Clock& clock)
    : instance_(instance), options_(options), clock_(clock) {
  options_.most =
      std::clamp(options_.most, 0, std::min(kMaxGuesses, instance.options().window - 1));
  if (options_.most == 0) return;
  if (options_.first_source != nullptr) sources_.push_back({.source = options_.first_source});
  const auto own = [&](std::unique_ptr<DraftSource> source) {
    sources_.push_back({.source = source.get()});
    own_.push_back(std::move(source));
  };
  own(std::make_unique<ForcedSource>());
  if (instance.model().draft_states() != nullptr) {
    own(std::make_unique<LookupSource>(kSureMatch));
    own(std::make_unique<MtpSource>(instance, sampler, options_.min_probability, clock, costs_));
  }
  own(std::make_unique<LookupSource>(kAnyMatch));
}

void Drafter::begin(Request& request) const {
  if (!on()) return;
  request.drafting.depth.resize(sources_.size());
  // The first token comes with the prompt, so of two the second is not worth reading along for.
  request.drafting.follows =
      instance_.model().draft_states() != nullptr && request.submit.max_tokens > 2;
  if (!request.drafting.follows || !options_.automatic) return;
  // Nor is a prompt, where the layer has not paid; unless it is time for another trial.
  for (const Source& source : sources_) {
    if (!source.source->costs()) continue;
    Experience everywhere = source.experience;
    request.drafting.follows =
        DepthChoice().choose(costs_, everywhere, options_.most, {}, true) > 0;
  }
}

int Drafter::most_for(const Request& request) const {
  return static_cast<int>(
      std::min<size_t>(static_cast<size_t>(options_.most), request.n_left() - 1));
}

void Drafter::learn(const StepPlan& plan, const StepResult& result, double ms) {
  const bool only_answers = std::ranges::all_of(plan, &StepPart::decodes);
  if (only_answers) costs_.add_step(result.n_rows, ms);
  if (!on()) return;
  for (size_t i = 0; i < plan.size(); ++i) {
    if (!plan[i].decodes) continue;
    Request& request = *plan[i].request;
    const std::span<const int32_t> guesses = guesses_of(plan[i]);
    const std::vector<int32_t>& tokens = result.parts[i].tokens;
    size_t n_right = 0;
    while (n_right < std::min(guesses.size(), tokens.size()) &&
           guesses[n_right] == tokens[n_right]) {
      ++n_right;
    }
    // An answer that ended says nothing about the guesses behind its end.
    const size_t n_judged = n_right == tokens.size() ? n_right : guesses.size();
    Drafting& drafting = request.drafting;
    if (n_judged > 0) {
      drafting.depth[drafting.source].add(static_cast<int>(n_judged), static_cast<int>(n_right));
      sources_[drafting.source].experience.acceptance.add(static_cast<int>(n_judged),
                                                          static_cast<int>(n_right));
    }
    for (Source& source : sources_) source.experience.time_ms += ms;
    count(request.drafts, n_judged, n_right);
    count(totals_, n_judged, n_right);
  }
}

std::vector<DraftJob> Drafter::jobs_after(const StepPlan& plan, const StepResult& result) const {
  std::vector<DraftJob> jobs;
  int row = 0;
  for (size_t i = 0; i < plan.size(); ++i) {
    Request& request = *plan[i].request;
    const StepResult::Part& part = result.parts[i];
    const int first_row = std::exchange(row, row + static_cast<int>(plan[i].ids.size()));
    request.drafting.guesses.clear();
    if (request.ended || request.cancelled) continue;
    DraftJob& job = jobs.emplace_back();
    job.request = &request;
    job.first_row = first_row;
    // Of the last token that was computed, the one behind it is the next to be; else they stand in
    // the session.
    const std::span<const int32_t> ids = request.session->ids();
    const std::span<const int32_t> kept = ids.last(static_cast<size_t>(part.n_kept));
    job.next.assign(kept.begin() + 1, kept.end());
    job.next.push_back(request.decoding() ? request.answer.back() : request.text[request.n_read]);
    job.reads_prompt = !plan[i].decodes;
  }
  return jobs;
}

int Drafter::choose(size_t index, Request& request, std::span<const DraftJob> jobs) {
  const int most = most_for(request);
  if (!options_.automatic || sources_[index].source == options_.first_source) return most;
  DepthChoice::Others others;
  for (const DraftJob& job : jobs) {
    if (job.request == &request || !job.request->decoding()) continue;
    const Drafting& drafting = job.request->drafting;
    const int n = static_cast<int>(job.guesses.size());
    others.rows += 1 + n;
    others.tokens +=
        n == 0 ? 1
               : drafting.depth[drafting.source].tokens(n, sources_[drafting.source].experience);
  }
  return request.drafting.depth[index].choose(costs_, sources_[index].experience, most, others,
                                              sources_[index].source->costs());
}

// A layer that reads along without being asked costs as much as one that guesses.
void Drafter::follow_or_rest(std::span<DraftJob> jobs) const {
  for (DraftJob& job : jobs) {
    Drafting& drafting = job.request->drafting;
    if (!job.request->decoding()) continue;
    drafting.n_idle = job.n_wanted > 0 ? 0 : drafting.n_idle + 1;
    if (options_.automatic && drafting.n_idle > kIdleSteps) drafting.follows = false;
    // After a rest its cells have a gap, which costs right guesses and nothing else.
    if (job.n_wanted > 0) drafting.follows = true;
  }
}

void Drafter::ask(size_t index, std::span<DraftJob> jobs) {
  Source& source = sources_[index];
  for (DraftJob& job : jobs) {
    const bool wants = job.guesses.empty() && job.request->decoding() && !source.broken;
    job.n_wanted = wants ? choose(index, *job.request, jobs) : 0;
  }
  if (source.broken) return;
  if (source.source->costs()) follow_or_rest(jobs);
  const auto has_guesses = [](const DraftJob& job) { return !job.guesses.empty(); };
  std::vector<bool> before;
  for (const DraftJob& job : jobs) before.push_back(has_guesses(job));
  try {
    source.source->draft(jobs);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::kDeviceLost) throw;
    source.broken = ++source.n_failures >= kMaxFailures;
    if (source.broken) {
      const device::Device& device = instance_.device();
      device.trips().trip(device::Feature::kDrafting, device.id(),
                          format("guesses of answers, {} times: {}", source.n_failures, e.what()));
    } else {
      log_info(format("guesses failed, the answers go on without them: {}", e.what()));
    }
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (!before[i]) jobs[i].guesses.clear();
    }
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (!before[i] && has_guesses(jobs[i])) jobs[i].request->drafting.source = index;
  }
}

void Drafter::draft(const StepPlan& plan, const StepResult& result) {
  if (!on()) return;
  std::vector<DraftJob> jobs = jobs_after(plan, result);
  if (jobs.empty()) return;
  const Clock::TimePoint begun = clock_.now();
  for (size_t i = 0; i < sources_.size(); ++i) ask(i, jobs);
  const std::chrono::duration<double, std::milli> time = clock_.now() - begun;
  for (DraftJob& job : jobs) {
    job.request->draft_ms += time.count();
    job.request->drafting.guesses = std::move(job.guesses);
  }
}

}  // namespace strata::engine
