#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace strata::engine {

struct Request;

// What a committed step left of one session, and how many guesses are wanted for its next one.
struct DraftJob {
  Request* request = nullptr;  // its answer has the tokens of the step already
  int first_row = 0;           // of the session's rows in the step; Model::residual() holds them
  std::vector<int32_t> next;   // of each row that was kept, the token behind it
  bool reads_prompt = false;   // these are rows of its prompt
  int n_wanted = 0;            // 0: none
  std::vector<int32_t> guesses;
};

// Guesses the tokens that a session will sample next. A guess is right if it is the token that the
// trunk samples from the same noise; one that is not costs a row and nothing else. The engine's
// thread.
class DraftSource {
 public:
  virtual ~DraftSource() = default;

  // After each step, between steps: all sessions of it. Appends up to n_wanted guesses to those
  // that want some. Errors: any but kDeviceLost means no guesses; nothing is queued any more, and
  // no session of the source's own is pending.
  virtual void draft(std::span<DraftJob> jobs) = 0;
  // Whether a guess takes time on the device, so that wanting none saves something.
  virtual bool costs() const = 0;

 protected:
  DraftSource() = default;
  DraftSource(const DraftSource&) = default;
  DraftSource& operator=(const DraftSource&) = default;
};

}  // namespace strata::engine
