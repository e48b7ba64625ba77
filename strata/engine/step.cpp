#include "strata/engine/step.h"

#include <chrono>
#include <exception>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/log.h"

namespace strata::engine {
namespace {

// What is left of a failed step is at most a step, and a step of a minute is no longer at work.
constexpr std::chrono::minutes kSettleLimit(1);

}  // namespace

void StepRunner::queue(const StepPlan& parts) {
  model::Model& model = instance_.model();
  model.begin_step();
  sampler_.begin();
  std::vector<int32_t> outputs;
  int32_t row = 0;
  for (const StepPart& part : parts) {
    model.add(*part.request->session, part.ids);
    row += static_cast<int32_t>(part.ids.size());
    if (!part.samples) continue;
    outputs.push_back(row - 1);
    sampler_.add(*part.request);
  }
  model.inputs().set_outputs(outputs);
  model.inputs().upload();
  model.forward();
  if (outputs.empty()) return;
  model.head();
  sampler_.run(instance_.stream(), model.logits(), model.inputs().n_out_rows());
}

StepTicket StepRunner::submit(StepPlan plan) {
  StepTicket ticket{std::move(plan)};
  try {
    queue(ticket.parts);
  } catch (...) {
    withdraw(ticket.parts);
    throw;
  }
  return ticket;
}

StepResult StepRunner::finish(StepTicket&& ticket) {
  StepResult result;
  try {
    instance_.wait("step");
    const std::span<const int32_t> chosen = sampler_.chosen();
    result.chosen.assign(chosen.begin(), chosen.end());
  } catch (...) {
    withdraw(ticket.parts);
    throw;
  }
  // From here on nothing throws: a step is committed as a whole, and once.
  for (const StepPart& part : ticket.parts) {
    part.request->session->commit(static_cast<int>(part.ids.size()));
  }
  return result;
}

// Within a handler of what went wrong.
void StepRunner::withdraw(const StepPlan& parts) {
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
  settle(why);
  for (const StepPart& part : parts) {
    if (part.request->session->n_pending() > 0) part.request->session->commit(0);
  }
}

// What is still queued reads tables that the next step overwrites, and writes to slots and pages
// that may go to other sessions.
void StepRunner::settle(const std::string& why) {
  const Clock& clock = instance_.device().waits().clock();
  const auto deadline = device::Deadline::within(kSettleLimit, clock);
  bool late = false;
  while (!late) {
    try {
      if (instance_.drain("the rest of a failed step", deadline)) return;
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
  throw Error(ErrorCode::kDeviceLost, format("{}; and the rest of that step does not end", why));
}

}  // namespace strata::engine
