#pragma once

#include <cstddef>
#include <cstdint>

#include "strata/text/template_limits.h"

namespace strata::text {

// What one rendering may still use. Every loop over outside data pays here, so a small template
// cannot run or grow without end.
class TemplateBudget {
 public:
  explicit TemplateBudget(const TemplateLimits& limits)
      : steps_left_(limits.max_steps), bytes_left_(limits.max_made_bytes), limits_(limits) {}

  // Errors: kInvalidArgument when the limit is passed.
  void step(uint64_t n = 1) {
    if (n > steps_left_) out_of_steps();
    steps_left_ -= n;
  }
  void make(uint64_t bytes) {
    if (bytes > bytes_left_) out_of_bytes();
    bytes_left_ -= bytes;
  }
  // Refuses at once what n times make(bytes) would refuse in the end.
  void foresee(uint64_t n, uint64_t bytes) {
    if (bytes != 0 && n > bytes_left_ / bytes) out_of_bytes();
  }
  // Reading `bytes` of text once; cheap against a step.
  void scan(uint64_t bytes) { step(bytes / 64); }

 private:
  [[noreturn]] void out_of_steps() const;
  [[noreturn]] void out_of_bytes() const;

  uint64_t steps_left_;
  uint64_t bytes_left_;
  TemplateLimits limits_;
};

}  // namespace strata::text
