#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "strata/base/error.h"
#include "strata/base/ids.h"

// What the front process and the engine say to each other. Plain values: used as they are inside
// one process, through the codec (codec.h) between two. A message that belongs to a request
// travels with its RequestId; the ones that do not travel with kNoRequest.
namespace strata::wire {

// Chosen by the front, never reused while the front lives. 0 is no request.
using RequestId = uint64_t;
inline constexpr RequestId kNoRequest = 0;

// Of one request; the engine refuses more.
inline constexpr int32_t kMaxLogitBiases = 4096;

// Added to the logit of `id` before anything else. Of several for one id all are added.
struct LogitBias {
  int32_t id = 0;
  float bias = 0;
  bool operator==(const LogitBias&) const = default;
};

// Of a repetition penalty. Beyond these a logit that it divides could leave the range of its type.
inline constexpr double kMinRepetitionPenalty = 1e-6;
inline constexpr double kMaxRepetitionPenalty = 1e6;

struct Sampling {
  float temperature = 1;  // 0: greedy, the lowest id wins a tie
  int32_t top_k = 0;      // 0: all
  float top_p = 1;        // (0, 1]; 1: off
  float min_p = 0;        // [0, 1]; share of the best probability; 0: off
  float presence_penalty = 0;
  float frequency_penalty = 0;
  float repetition_penalty = 1;    // 1: off
  int32_t repetition_window = 64;  // last tokens it looks at, prompt included; -1: all, 0: off
  std::optional<uint64_t> seed;    // absent: the engine draws one
  std::vector<LogitBias> logit_bias;
  bool operator==(const Sampling&) const = default;
};

// ---- front to engine ----

// The reasoning of an answer: text up to `close`.
struct Reasoning {
  bool open = false;  // the prompt ends inside it; otherwise the answer may open it by `begin`
  std::string begin, close;      // the tags, not empty
  int32_t budget = -1;           // tokens, the closing ones not counted; -1: no bound
  std::vector<int32_t> wrap_up;  // what is written when the budget is used up; ends with `close`
  bool operator==(const Reasoning&) const = default;
};

// Of Tokens: as natural logarithms, by the model's logits as they are, before penalties, biases,
// masks, temperature and filters.
inline constexpr int32_t kMaxTopLogprobs = 20;

// A request. Answered by Progress and Tokens in any number, then by Finished or Failed exactly
// once. Errors (as Failed): kInvalidArgument if an id is outside the vocabulary or the prompt
// leaves no room for max_tokens, there are too many biases, or the grammar cannot be read;
// kUnsupported if the grammar is too large. The front has checked all before.
struct Submit {
  std::vector<int32_t> ids;  // the prompt, at least one
  Sampling sampling;
  std::vector<std::string> stops;  // not empty strings; matched on the bytes of the answer
  std::vector<int32_t> stop_ids;   // end the answer and are not part of it (end of turn, ...)
  int32_t max_tokens = 0;          // at least 1
  // Tokens of the answer that an engine has sent before it died: the answer goes on behind them,
  // with the bytes it would have had. They count for max_tokens and are not sent again. The seed is
  // given then.
  std::vector<int32_t> sent;
  // Where messages of the prompt begin, in tokens, rising: from there a later prompt is likely to
  // differ. May be empty.
  std::vector<int32_t> boundaries;
  // What the answer must look like, from the end of its reasoning on if the prompt opened that: a
  // grammar in GBNF (text/grammar/gbnf.h). Empty: anything. When the text is whole and nothing may
  // follow, the answer ends with kStop.
  std::string grammar;
  std::optional<Reasoning> reasoning;
  int32_t n_top_logprobs = -1;  // up to kMaxTopLogprobs; -1: none
  bool operator==(const Submit&) const = default;
};

// The request ends soon with Finished{kCancelled}, or with the terminal event already under way.
// An unknown or ended request is ignored.
struct Cancel {
  bool operator==(const Cancel&) const = default;
};

// Ends the engine: running requests end with Failed{kCancelled}, then the process leaves with 0.
// The front drains before it says this.
struct Shutdown {
  bool operator==(const Shutdown&) const = default;
};

using Command = std::variant<Submit, Cancel, Shutdown>;

// ---- engine to front: of a request ----

// While the prompt is read. In tokens; `done` includes `cached`.
struct Progress {
  int32_t done = 0;
  int32_t total = 0;
  int32_t cached = 0;
  bool operator==(const Progress&) const = default;
};

struct Logprob {
  int32_t id = 0;
  float logprob = 0;
  bool operator==(const Logprob&) const = default;
};

struct TokenLogprobs {
  float chosen = 0;
  std::vector<Logprob> top;  // falling, of equals the lower id first
  bool operator==(const TokenLogprobs&) const = default;
};

// Tokens of the answer, as they come. `bytes` are the ones the stop matcher has let go: a part that
// may still become a stop string is held back, one that did is never sent. They may be of earlier
// ids, may be empty, and may end inside a UTF-8 character.
struct Tokens {
  std::vector<int32_t> ids;
  std::string bytes;
  std::vector<TokenLogprobs> logprobs;  // one an id, if asked for
  bool operator==(const Tokens&) const = default;
};

enum class Reason : uint8_t {
  kStop,        // one of stop_ids
  kStopString,  // one of stops
  kLength,      // max_tokens, or the context is full
  kCancelled,
};

struct Usage {
  int32_t prompt_tokens = 0;
  int32_t completion_tokens = 0;  // sampled ids, the stop id included
  int32_t cached_tokens = 0;      // of the prompt, not computed again
  int32_t reasoning_tokens = 0;   // of the completion; 0 if Submit has no reasoning
  bool operator==(const Usage&) const = default;
};

// What became of guessed tokens (drafts). By depth, the first guess first; both lists are equally
// long.
struct Drafts {
  uint64_t passes = 0;            // steps that computed the answer
  std::vector<uint64_t> guessed;  // tokens
  std::vector<uint64_t> right;    // of them, those that the model itself chose
  bool operator==(const Drafts&) const = default;
};

struct Timings {
  double queue_ms = 0;   // from Submit to the first row in a step
  double prompt_ms = 0;  // from there to the first token
  double decode_ms = 0;  // from there to the last
  double draft_ms = 0;   // of prompt_ms and decode_ms, for guesses
  bool operator==(const Timings&) const = default;
};

// All bytes that belong to the answer have been sent before in Tokens.
struct Finished {
  Reason reason = Reason::kStop;
  Usage usage;
  Timings timings;
  Drafts drafts;
  std::string stop;  // kStopString: which of stops
  bool operator==(const Finished&) const = default;
};

struct Failed {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  bool operator==(const Failed&) const = default;
};

// ---- engine to front: of the engine ----

struct Limits {
  int32_t n_context = 0;          // tokens of prompt and answer together
  int32_t max_prompt_tokens = 0;  // at most n_context - 1
  int32_t n_slots = 0;            // requests that run at the same time
  int32_t n_vocab = 0;            // ids are in [0, n_vocab)
  bool operator==(const Limits&) const = default;
};

// One stretch of memory that an engine has planned, as memory::Line has it.
struct PlanLine {
  std::string owner, name, formula;
  Bytes bytes = 0;
  std::string phases;   // "always", "prompt+decode"
  bool mapped = false;  // in a mapped file: no part of the peak
  bool operator==(const PlanLine&) const = default;
};

// What an engine has planned for one device, and what it took.
struct PlanDevice {
  std::string name;
  Bytes budget = 0;            // what may be used; 0: not known
  Bytes reserve = 0;           // kept free beside it
  Bytes peak = 0;              // planned, the largest phase
  Bytes used = 0;              // the most that was allocated before ready
  int64_t n_expert_slots = 0;  // of a card
  std::vector<PlanLine> lines;
  bool operator==(const PlanDevice&) const = default;
};

// Host memory first, then the cards. In storage: experts that lie nowhere else at the start.
struct MemoryPlan {
  std::vector<PlanDevice> devices;
  Bytes storage = 0;
  bool operator==(const MemoryPlan&) const = default;
};

// Once, when the first request may come. Pulses come before it, too.
struct Ready {
  Limits limits;
  MemoryPlan memory;
  bool operator==(const Ready&) const = default;
};

// Where the experts were that steps wanted; all 0 where they never move.
struct ExpertReads {
  uint64_t card_hits = 0;    // choices of rows that a slot of the card had
  uint64_t card_misses = 0;  // those the host computed instead
  uint64_t ram_hits = 0;     // experts of a layer's step that the pool in RAM had
  uint64_t ram_misses = 0;   // those that were read from storage meanwhile
  uint64_t ahead = 0;        // read from storage before they were wanted
  Bytes bytes = 0;           // that came from storage
  uint64_t swaps = 0;        // experts that took the place of another on a card
  bool operator==(const ExpertReads&) const = default;
};

// What an engine has done since its process began.
struct Work {
  uint64_t prompt_tokens = 0;  // computed, not those that were cached
  uint64_t cached_tokens = 0;  // those
  uint64_t answer_tokens = 0;
  uint64_t steps = 0;
  uint64_t failed_steps = 0;  // run again, or the end of their requests
  Drafts drafts;
  uint64_t masks = 0;    // of grammars, one a row
  uint64_t mask_ns = 0;  // that making them took
  ExpertReads experts;
  bool operator==(const Work&) const = default;
};

// What can be switched off because it failed, and how often that has happened in this process.
struct FeatureTrips {
  std::string name;  // "graphs"
  uint32_t n_trips = 0;
  bool operator==(const FeatureTrips&) const = default;
};

// Twice a second, from a thread that does not compute, from the start of the process on. Silence
// means a dead process; a large step_ms means a hung step.
struct Pulse {
  std::string phase;      // "reading weights 43 %", "ready"; plain words for /health
  std::string wait;       // what the process waits for, and how long already; empty: nothing
  int32_t step_ms = 0;    // how long the present step has run; 0: between steps
  int32_t step_rows = 0;  // rows of the present step
  int32_t n_running = 0;  // requests that hold a slot
  int32_t n_waiting = 0;  // requests that wait for one
  int32_t n_kept = 0;     // states of conversations in the prompt cache
  Bytes resident = 0;     // memory of the process, mapped files included; 0: unknown
  Bytes anonymous = 0;    // without them
  Work work;
  std::vector<FeatureTrips> features;
  std::vector<std::string> degraded;  // why the engine is not all it could be, a sentence each
  bool operator==(const Pulse&) const = default;
};

// The last words of a process that leaves because of an error. One that is killed has none.
struct Leaving {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::string hang;  // work that does not end was why: what, and where; else empty
  bool operator==(const Leaving&) const = default;
};

using Event = std::variant<Progress, Tokens, Finished, Failed, Ready, Pulse, Leaving>;

// An event and whose it is. A step hands over a list of them, written with one call.
struct Addressed {
  RequestId request = kNoRequest;
  Event event;
  bool operator==(const Addressed&) const = default;
};

}  // namespace strata::wire
