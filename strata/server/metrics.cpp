#include "strata/server/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "strata/base/os/memory.h"

namespace strata::server {
namespace {

using prometheus::MetricType;
using supervise::State;

constexpr std::array kStates = {State::kStarting, State::kReady, State::kDegraded,
                                State::kRestarting, State::kFailed};

std::string_view name(wire::Reason reason) {
  switch (reason) {
    case wire::Reason::kStop:
    case wire::Reason::kStopString:
      return "stop";
    case wire::Reason::kLength:
      return "length";
    case wire::Reason::kCancelled:
      break;
  }
  return "cancelled";
}

prometheus::MetricFamily family(MetricType type, const char* name, const char* help) {
  prometheus::MetricFamily result;
  result.name = name;
  result.help = help;
  result.type = type;
  return result;
}

void add(prometheus::MetricFamily& family, double value,
         std::vector<prometheus::ClientMetric::Label> labels = {}) {
  prometheus::ClientMetric& metric = family.metric.emplace_back();
  metric.label = std::move(labels);
  if (family.type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
}

// Where all experts have their places for good there is nothing to tell.
void experts(const wire::ExpertReads& reads, std::vector<prometheus::MetricFamily>& rows) {
  const auto counter = [&](const char* name, uint64_t value, const char* help) {
    add(rows.emplace_back(family(MetricType::Counter, name, help)), static_cast<double>(value));
  };
  const bool cards = reads.card_hits + reads.card_misses > 0;
  const bool pool = reads.ram_hits + reads.ram_misses + reads.ahead > 0;
  if (!cards && !pool) return;
  auto& hits = rows.emplace_back(family(MetricType::Counter, "strata_engine_expert_hits_total",
                                        "Experts that a step wanted and the tier had."));
  if (cards) add(hits, static_cast<double>(reads.card_hits), {{"tier", "card"}});
  if (pool) add(hits, static_cast<double>(reads.ram_hits), {{"tier", "ram"}});
  auto& misses = rows.emplace_back(family(MetricType::Counter, "strata_engine_expert_misses_total",
                                          "Experts that a step wanted and the tier had not."));
  if (cards) add(misses, static_cast<double>(reads.card_misses), {{"tier", "card"}});
  if (pool) add(misses, static_cast<double>(reads.ram_misses), {{"tier", "ram"}});
  if (cards) {
    counter("strata_engine_expert_swaps_total", reads.swaps,
            "Experts that took the place of another on a card.");
  }
  if (pool) {
    counter("strata_engine_experts_read_ahead_total", reads.ahead,
            "Experts read from storage before they were wanted.");
    counter("strata_engine_expert_read_bytes_total", reads.bytes,
            "Bytes of experts that came from storage.");
  }
}

std::vector<prometheus::MetricFamily> families(const supervise::Status& status) {
  std::vector<prometheus::MetricFamily> rows;
  const auto row = [&](MetricType type, const char* name, double value, const char* help) {
    add(rows.emplace_back(family(type, name, help)), value);
  };
  const auto gauge = [&](const char* name, auto value, const char* help) {
    row(MetricType::Gauge, name, static_cast<double>(value), help);
  };
  const auto counter = [&](const char* name, auto value, const char* help) {
    row(MetricType::Counter, name, static_cast<double>(value), help);
  };
  auto& states = rows.emplace_back(
      family(MetricType::Gauge, "strata_engine_state", "1 for the state the engine is in."));
  for (const State state : kStates) {
    add(states, state == status.state ? 1 : 0, {{"state", std::string(supervise::name(state))}});
  }
  gauge("strata_requests_in_work", status.n_requests, "Requests accepted and not ended.");
  counter("strata_engine_restarts_total", status.n_restarts, "Engine processes started again.");

  const wire::Pulse& pulse = status.pulse;
  gauge("strata_engine_running_requests", pulse.n_running, "Requests that hold a slot.");
  gauge("strata_engine_waiting_requests", pulse.n_waiting, "Requests that wait for a slot.");
  gauge("strata_engine_slots", status.limits.n_slots, "Requests that can run at the same time.");
  gauge("strata_engine_context_tokens", status.limits.n_context,
        "Tokens of prompt and answer together.");
  gauge("strata_engine_step_seconds", pulse.step_ms / 1000.0, "How long the present step has run.");
  gauge("strata_engine_step_rows", pulse.step_rows, "Rows of the present step.");
  gauge("strata_engine_resident_bytes", pulse.resident,
        "Memory of the engine process, mapped files included.");
  gauge("strata_engine_anonymous_bytes", pulse.anonymous,
        "Memory of the engine process without mapped files.");
  gauge("strata_front_resident_bytes", os::process_memory().rss, "Memory of the front process.");
  counter("strata_engine_steps_total", pulse.work.steps, "Steps of this engine process.");
  counter("strata_engine_failed_steps_total", pulse.work.failed_steps,
          "Steps that failed, in this engine process.");
  counter("strata_engine_prompt_tokens_total", pulse.work.prompt_tokens,
          "Prompt tokens computed by this engine process.");
  counter("strata_engine_cached_tokens_total", pulse.work.cached_tokens,
          "Prompt tokens that were not computed, as their state was kept.");
  gauge("strata_engine_kept_states", pulse.n_kept, "States of conversations in the prompt cache.");
  counter("strata_engine_answer_tokens_total", pulse.work.answer_tokens,
          "Tokens sampled by this engine process.");
  counter("strata_engine_answer_passes_total", pulse.work.drafts.passes,
          "Steps of each answer, with or without guesses.");
  const auto by_depth = [&](const char* name, const std::vector<uint64_t>& counts,
                            const char* help) {
    auto& guesses = rows.emplace_back(family(MetricType::Counter, name, help));
    for (size_t i = 0; i < counts.size(); ++i) {
      add(guesses, static_cast<double>(counts[i]), {{"depth", std::to_string(i + 1)}});
    }
  };
  by_depth("strata_engine_guessed_tokens_total", pulse.work.drafts.guessed,
           "Tokens guessed, by their place in the guess.");
  by_depth("strata_engine_right_guesses_total", pulse.work.drafts.right,
           "Of these, the ones that the model chose as well.");
  auto& trips = rows.emplace_back(
      family(MetricType::Counter, "strata_engine_trips_total",
             "Features that this engine process has switched off because they failed."));
  for (const wire::FeatureTrips& each : pulse.features) {
    add(trips, each.n_trips, {{"feature", each.name}});
  }
  counter("strata_engine_masks_total", pulse.work.masks,
          "Masks of grammars made by this engine process.");
  counter("strata_engine_mask_seconds_total", static_cast<double>(pulse.work.mask_ns) / 1e9,
          "Time that making them took.");
  experts(pulse.work.experts, rows);
  return rows;
}

}  // namespace

struct Metrics::Counts {
  prometheus::Family<prometheus::Counter>& family(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  prometheus::Counter& counter(const char* name, const char* help) {
    return family(name, help).Add({});
  }

  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& requests =
      family("strata_http_requests_total", "HTTP requests by path and status.");
  prometheus::Family<prometheus::Counter>& answers =
      family("strata_answers_total", "Answers by how they ended.");
  prometheus::Counter& prompt_tokens =
      counter("strata_prompt_tokens_total", "Tokens of the prompts of ended answers.");
  prometheus::Counter& cached_tokens =
      counter("strata_cached_prompt_tokens_total", "Of these, those that were not computed again.");
  prometheus::Counter& answer_tokens =
      counter("strata_answer_tokens_total", "Tokens of ended answers.");
  prometheus::Counter& queue_seconds =
      counter("strata_queue_seconds_total", "Time that ended answers waited for a slot.");
  prometheus::Counter& prompt_seconds =
      counter("strata_prompt_seconds_total", "Time from there to their first token.");
  prometheus::Counter& decode_seconds =
      counter("strata_decode_seconds_total", "Time from there to their last token.");
  prometheus::Counter& draft_seconds =
      counter("strata_draft_seconds_total", "Of the last two, time for guesses.");
};

Metrics::Metrics() : counts_(std::make_unique<Counts>()) {}
Metrics::~Metrics() = default;

void Metrics::request(std::string_view path, int status) {
  counts_->requests.Add({{"path", std::string(path)}, {"status", std::to_string(status)}})
      .Increment();
}

void Metrics::finished(const wire::Finished& end) {
  counts_->answers.Add({{"reason", std::string(name(end.reason))}}).Increment();
  counts_->prompt_tokens.Increment(end.usage.prompt_tokens);
  counts_->cached_tokens.Increment(end.usage.cached_tokens);
  counts_->answer_tokens.Increment(end.usage.completion_tokens);
  counts_->queue_seconds.Increment(end.timings.queue_ms / 1000);
  counts_->prompt_seconds.Increment(end.timings.prompt_ms / 1000);
  counts_->decode_seconds.Increment(end.timings.decode_ms / 1000);
  counts_->draft_seconds.Increment(end.timings.draft_ms / 1000);
}

void Metrics::failed() { counts_->answers.Add({{"reason", "failed"}}).Increment(); }

std::string Metrics::text(const supervise::Status& status) const {
  std::vector<prometheus::MetricFamily> rows = counts_->registry.Collect();
  for (prometheus::MetricFamily& each : families(status)) rows.push_back(std::move(each));
  return prometheus::TextSerializer().Serialize(rows);
}

}  // namespace strata::server
