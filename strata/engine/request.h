#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "strata/base/clock.h"
#include "strata/engine/draft/depth.h"
#include "strata/engine/draft/lookup.h"
#include "strata/engine/forms.h"
#include "strata/engine/guide.h"
#include "strata/engine/penalty_counts.h"
#include "strata/engine/stop_matcher.h"
#include "strata/model/state.h"
#include "strata/wire/messages.h"

namespace strata::engine {

// What guesses the tokens of a request, and how well.
struct Drafting {
  std::vector<int32_t> guesses;                // for the next step
  size_t source = 0;                           // who made them
  bool follows = false;                        // the draft layer reads what the trunk reads
  int n_idle = 0;                              // steps in a row without a guess of the draft layer
  std::unique_ptr<model::SessionState> cells;  // of the draft layer
  LookupIndex lookup;
  std::vector<DepthChoice> depth;  // of each source
};

// A request from its arrival to its end. Owned by the engine's thread.
struct Request {
  Request(wire::RequestId request_id, wire::Submit&& what, uint64_t drawn_seed,
          Clock::TimePoint now)
      : id(request_id),
        submit(std::move(what)),
        seed(submit.sampling.seed.value_or(drawn_seed)),
        matcher(submit.stops),
        penalties(submit.sampling, submit.ids),
        text(submit.ids),
        arrived(now) {
    text.insert(text.end(), submit.sent.begin(), submit.sent.end());
  }

  wire::RequestId id;
  wire::Submit submit;
  uint64_t seed;
  StopMatcher matcher;
  PenaltyCounts penalties;                       // of the answer so far
  std::unique_ptr<model::SessionState> session;  // from admission on
  std::shared_ptr<const Form> form;              // of its grammar, if it has one; see Forms
  Guide guide;                                   // from admission on; has seen the answer so far
  Drafting drafting;
  std::vector<int32_t> text;    // to be read before the next token: the prompt, and what was sent
  size_t n_read = 0;            // of text: tokens that are committed
  size_t n_cached = 0;          // of them, not computed for this request
  std::vector<size_t> keep_at;  // tokens of text after which the state is kept, rising
  std::vector<int32_t> answer;  // sampled ids
  bool begun = false;           // it was in a step
  bool cancelled = false;       // it is to end
  bool ended = false;           // its last event has been said
  bool failed = false;          // and that was an error

  Clock::TimePoint arrived;
  std::optional<Clock::TimePoint> started, first_token;
  wire::Drafts drafts;  // what became of the guesses
  double draft_ms = 0;

  bool decoding() const { return n_read == text.size(); }
  // Tokens of the text that a step may read: the rest, or up to where the state is to be kept.
  size_t n_readable() const {
    return (keep_at.empty() ? text.size() : std::min(keep_at.front(), text.size())) - n_read;
  }
  // Of the answer, at most.
  size_t n_left() const { return static_cast<size_t>(submit.max_tokens) - answer.size(); }
};

}  // namespace strata::engine
