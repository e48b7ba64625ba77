#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace strata::text {

// How much work a request may still cause in one place. Steps are counted, not timed, so that the
// outcome is the same on every machine and in every run.
class WorkBudget {
 public:
  // `too_much`: what to tell whose budget is used up.
  WorkBudget(size_t steps, std::string too_much) : left_(steps), too_much_(std::move(too_much)) {}
  // Errors: kUnsupported when less is left.
  void spend(size_t steps) {
    if (steps > left_) fail();
    left_ -= steps;
  }
  size_t left() const { return left_; }

 private:
  [[noreturn]] void fail() const;

  size_t left_;
  std::string too_much_;
};

}  // namespace strata::text
