#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "strata/text/jinja/limits.h"

namespace strata::text {

// What one rendering may still use. Every loop over outside data pays here, so a small template
// cannot run or grow without end.
class TemplateBudget {
 public:
  explicit TemplateBudget(const TemplateLimits& limits)
      : steps_left_(limits.max_steps),
        made_left_(limits.max_made_bytes),
        held_left_(limits.max_held_bytes),
        limits_(limits) {}
  TemplateBudget(const TemplateBudget&) = delete;
  TemplateBudget& operator=(const TemplateBudget&) = delete;

  // Errors: kInvalidArgument when the limit is passed.
  void step(uint64_t n = 1) {
    if (n > steps_left_) out_of_steps();
    steps_left_ -= n;
  }
  // For what stays until the end of the rendering; see Charge for the rest.
  void make(uint64_t bytes) {
    foresee(1, bytes);
    made_left_ -= bytes;
    held_left_ -= bytes;
  }
  // Refuses at once what n times make(bytes) would refuse in the end: called before something large
  // is built.
  void foresee(uint64_t n, uint64_t bytes) const {
    if (bytes != 0 && n > std::min(made_left_, held_left_) / bytes) out_of_bytes();
  }
  // Reading `bytes` of text once; cheap against a step.
  void scan(uint64_t bytes) { step(bytes / 64); }
  // Looking at each character on its own.
  void walk(uint64_t bytes) { step(bytes / 8); }

 private:
  friend class Charge;

  [[noreturn]] void out_of_steps() const;
  [[noreturn]] void out_of_bytes() const;

  uint64_t steps_left_;
  uint64_t made_left_;
  uint64_t held_left_;
  TemplateLimits limits_;
};

// What a text or a list has taken from a budget. It goes back when this dies, so that the limit
// counts what is there, not what was. The budget outlives it. Move-only.
class Charge {
 public:
  Charge() = default;
  explicit Charge(TemplateBudget& budget, uint64_t bytes = 0) : budget_(&budget) { grow(bytes); }
  ~Charge() { release(); }
  Charge(Charge&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Charge& operator=(Charge&& other) noexcept {
    if (this != &other) {
      release();
      budget_ = std::exchange(other.budget_, nullptr);
      bytes_ = std::exchange(other.bytes_, 0);
    }
    return *this;
  }

  // Only of one that has a budget. Errors: as TemplateBudget::make.
  void grow(uint64_t bytes) {
    budget_->make(bytes);
    bytes_ += bytes;
  }

 private:
  void release() {
    if (budget_ != nullptr) budget_->held_left_ += bytes_;
  }

  TemplateBudget* budget_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace strata::text
