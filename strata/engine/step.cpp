#include "strata/engine/step.h"

#include <utility>

namespace strata::engine {

StepTicket StepRunner::submit(StepPlan&& plan) {
  model::Model& model = instance_.model();
  device::Stream& stream = instance_.stream();
  StepTicket ticket{std::move(plan)};
  try {
    model.begin_step();
    sampler_.begin();
    std::vector<int32_t> outputs;
    int32_t row = 0;
    for (const StepPart& part : ticket.parts) {
      model.add(*part.request->session, part.ids);
      row += static_cast<int32_t>(part.ids.size());
      if (!part.samples) continue;
      outputs.push_back(row - 1);
      sampler_.add(*part.request);
    }
    model.inputs().set_outputs(outputs);
    model.inputs().upload(stream);
    model.forward(stream);
    if (!outputs.empty()) {
      model.head(stream);
      sampler_.run(stream, model.logits(), model.inputs().n_out_rows());
    }
  } catch (...) {
    withdraw(ticket.parts);
    throw;
  }
  return ticket;
}

StepResult StepRunner::finish(StepTicket&& ticket) {
  try {
    instance_.wait("step");
  } catch (...) {
    withdraw(ticket.parts);
    throw;
  }
  for (const StepPart& part : ticket.parts) {
    part.request->session->commit(static_cast<int>(part.ids.size()));
  }
  const std::span<const int32_t> chosen = sampler_.chosen();
  return {.chosen = {chosen.begin(), chosen.end()}};
}

void StepRunner::withdraw(const StepPlan& parts) {
  for (const StepPart& part : parts) {
    if (part.request->session->n_pending() > 0) part.request->session->commit(0);
  }
}

}  // namespace strata::engine
