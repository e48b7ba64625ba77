#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace strata::engine {

// Guesses of one step at most, whatever is asked for.
inline constexpr int kMaxGuesses = 32;

// How often guesses are right, by depth: of those whose predecessors were right. Older ones count
// less and less.
class Acceptance {
 public:
  // Of a window of n guesses the first n_right were right.
  void add(int n, int n_right);
  // The share at a depth (0: the first guess), `prior` weighing as much as two guesses.
  double share(int depth, double prior) const;

 private:
  std::array<float, kMaxGuesses> n_{}, n_right_{};
};

// What steps cost, measured. In any unit of time.
//
// Two things change a measured time: what the work is, and what else the machine does. Sizes that
// nobody chooses are not measured again, so if each had a mean of its own, one that was measured in
// a bad moment would look dear for ever, and all of them cheap as soon as the machine got slower.
// Hence a common factor, which every measurement moves quickly, and what the sizes cost against
// each other, which moves slowly.
class StepCosts {
 public:
  // A step of so many rows of answers, and nothing else.
  void add_step(int rows, double ms);
  // A pass of the draft layer that keeps up, with a first guess, and one that goes on.
  void add_first_draft(double ms) { blend(first_draft_, ms, 0); }
  void add_next_draft(double ms) { blend(next_draft_, ms, 0); }
  // The same of measurements that were made with care, before the first step.
  void set_step(int rows, double ms);
  void set_drafts(double first_ms, double next_ms);

  bool known() const { return !steps_.empty(); }
  // Between sizes that were measured on a straight line; beyond the last as it rose to there. Never
  // more than a larger step.
  double step(int rows) const;
  double draft(int depth) const;

 private:
  struct Mean {
    double ms = 0;  // where the common factor is 1
    int n = 0;
  };
  void blend(Mean& mean, double ms, double expected);
  double at(int rows) const;  // 0: not measured
  double line(int rows) const;

  std::vector<Mean> steps_;  // i: of i + 1 rows
  Mean first_draft_, next_draft_;
  double factor_ = 1;
};

// What a source did for all sessions together: where a new session begins, and what trials may
// cost.
struct Experience {
  Acceptance acceptance;
  double time_ms = 0;   // of steps
  double spent_ms = 0;  // on guesses that did not seem to pay
};

// Chooses how many guesses a session's next step gets, so that tokens come fastest: by measured
// acceptance and cost. What draws badly is tried again now and then, for a share of the time that
// is not felt. One for a session and a source.
class DepthChoice {
 public:
  // What the other sessions bring to the step.
  struct Others {
    int rows = 0;
    double tokens = 0;
  };

  // drafting: whether a guess takes time of the draft layer.
  int choose(const StepCosts& costs, Experience& everywhere, int most, const Others& others,
             bool drafting);
  // What became of the n guesses of a step.
  void add(int n, int n_right) { acceptance_.add(n, n_right); }
  // Tokens that the step of n guesses is expected to give.
  double tokens(int n, const Experience& everywhere) const;

 private:
  Acceptance acceptance_;
  int n_trials_ = 0;  // still to come
};

}  // namespace strata::engine
