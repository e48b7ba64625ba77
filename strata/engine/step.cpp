#include "strata/engine/step.h"

#include <chrono>
#include <exception>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/log.h"

namespace strata::engine {
namespace {

wire::TokenLogprobs told(const kernels::RowLogprobs& row, int32_t chosen) {
  wire::TokenLogprobs told;
  if (chosen < 0) return told;
  told.chosen = row.chosen;
  for (int i = 0; i < row.n_top; ++i) told.top.push_back({row.id[i], row.logprob[i]});
  return told;
}

}  // namespace

std::string step_text(const StepPlan& plan) {
  size_t n_rows = 0, n_prompt = 0, n_answers = 0;
  for (const StepPart& part : plan) {
    n_rows += part.ids.size();
    part.decodes ? ++n_answers : n_prompt += part.ids.size();
  }
  return format("a step of {} rows ({} of prompts, {} answers)", n_rows, n_prompt, n_answers);
}

void StepRunner::queue(const StepPlan& parts) {
  model::Model& model = instance_.model();
  model.begin_step();
  sampler_.begin();
  std::vector<int32_t> outputs;
  int32_t row = 0;
  for (const StepPart& part : parts) {
    model.add(*part.request->session, part.ids);
    row += static_cast<int32_t>(part.ids.size());
    for (int i = part.n_outputs; i > 0; --i) outputs.push_back(row - i);
    // Behind the row of a guess the guess counts as answer.
    const std::span<const int32_t> guesses = std::span(part.ids).subspan(part.decodes ? 1 : 0);
    for (int i = 0; i < part.n_outputs; ++i) {
      sampler_.add(
          *part.request,
          part.decodes ? guesses.first(static_cast<size_t>(i)) : std::span<const int32_t>(),
          part.request->submit.n_top_logprobs);
    }
  }
  model.inputs().set_outputs(outputs);
  model.inputs().upload();
  model.forward();
  if (outputs.empty()) return;
  model.head();
  sampler_.run(instance_.stream(), model.logits(), model.inputs().n_out_rows());
}

// A guess is right if it is the token that its row's logits give; behind a wrong one nothing
// counts.
StepResult StepRunner::accept(const StepPlan& parts) const {
  StepResult result;
  std::span<const int32_t> chosen = sampler_.chosen();
  std::span<const kernels::RowLogprobs> logprobs = sampler_.logprobs();
  for (const StepPart& part : parts) {
    StepResult::Part& out = result.parts.emplace_back();
    result.n_rows += static_cast<int>(part.ids.size());
    const std::span<const int32_t> tokens = chosen.first(static_cast<size_t>(part.n_outputs));
    const std::span<const kernels::RowLogprobs> about = logprobs.first(tokens.size());
    chosen = chosen.subspan(tokens.size());
    logprobs = logprobs.subspan(tokens.size());
    out.n_kept = static_cast<int>(part.ids.size());
    if (tokens.empty()) continue;
    size_t n = 1;
    if (part.decodes) {
      while (n < tokens.size() && tokens[n - 1] == part.ids[n]) ++n;
      n = static_cast<size_t>(answers_.n_accepted(*part.request, tokens.first(n)));
      out.n_kept = static_cast<int>(n);
    }
    out.tokens.assign(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n));
    if (part.request->submit.n_top_logprobs < 0) continue;
    for (size_t i = 0; i < n; ++i) out.logprobs.push_back(told(about[i], tokens[i]));
  }
  return result;
}

// Recurrent state of windows that are kept in part.
void StepRunner::replay(const StepPlan& parts, const StepResult& result) {
  model::StepInputs& inputs = instance_.model().inputs();
  bool any = false;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int n_kept = result.parts[i].n_kept;
    if (n_kept == static_cast<int>(parts[i].ids.size())) continue;
    inputs.set_kept(static_cast<int>(i), n_kept);
    any = true;
  }
  if (!any) return;
  inputs.upload_kept();
  instance_.model().commit();
  instance_.wait("what is kept of a step");
}

StepTicket StepRunner::submit(StepPlan plan) {
  int n_rows = 0;
  for (const StepPart& part : plan) n_rows += static_cast<int>(part.ids.size());
  StepTicket ticket{std::move(plan),
                    std::make_unique<StepBound>(instance_.waits(), limit_, n_rows)};
  try {
    queue(ticket.parts);
  } catch (...) {
    ticket.bound.reset();
    withdraw(ticket.parts);
    throw;
  }
  return ticket;
}

StepResult StepRunner::finish(StepTicket&& ticket) {
  StepResult result;
  try {
    instance_.wait("step");
    result = accept(ticket.parts);
    replay(ticket.parts, result);
  } catch (...) {
    ticket.bound.reset();
    withdraw(ticket.parts);
    throw;
  }
  // From here on nothing throws: a step is committed as a whole, and once.
  for (size_t i = 0; i < ticket.parts.size(); ++i) {
    ticket.parts[i].request->session->commit(result.parts[i].n_kept);
  }
  return result;
}

// Within a handler of what went wrong.
void StepRunner::withdraw(const StepPlan& parts) {
  // What is left is at most a step, and one that takes so long again is no longer at work.
  settle_failure(instance_, "the rest of a failed step", limit_.base / 2);
  for (const StepPart& part : parts) {
    if (part.request->session->n_pending() > 0) part.request->session->commit(0);
  }
}

std::string settle_failure(model::Instance& instance, const char* what,
                           std::chrono::milliseconds limit) {
  std::string why = "something unknown was thrown";
  try {
    throw;
  } catch (const Error& e) {
    if (e.code() == ErrorCode::kDeviceLost) throw;
    why = e.what();
  } catch (const std::exception& e) {
    why = e.what();
  } catch (...) {
  }
  const Clock& clock = instance.device().waits().clock();
  const auto deadline = device::Deadline::within(limit, clock);
  bool late = false;
  while (!late) {
    try {
      if (instance.drain(what, deadline)) return why;
      late = true;
    } catch (const Error& e) {
      if (e.code() == ErrorCode::kDeviceLost) throw;
      log_warning(format("and in what was queued behind it: {}", e.what()));
    } catch (const std::exception& e) {
      log_warning(format("and in what was queued behind it: {}", e.what()));
    }
    // What failed has left the queue, so the next turn gets further.
    late = late || clock.now() >= deadline.at;
  }
  instance.set_hang(why);
  throw Error(ErrorCode::kDeviceLost, format("{}; and the rest of that step does not end", why));
}

}  // namespace strata::engine
