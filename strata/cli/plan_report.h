#pragma once

#include <string>

#include "strata/memory/planner.h"

namespace strata::cli {

// What a plan is about, for its heading.
struct PlanSubject {
  std::string model;    // "name, 48 layers, ..."
  std::string machine;  // "12 GB card, 64 GB RAM"
  int n_experts = 0;    // a layer
};

// For people: a table for each card, RAM and storage, then what is where, what to expect and what
// was decided.
std::string plan_text(const memory::Solution& solution, const PlanSubject& subject);

// For programs; docs/howto/plan.md lists the keys. Ends with a newline.
std::string plan_json(const memory::Solution& solution, const PlanSubject& subject);

}  // namespace strata::cli
