#include "strata/engine/engine.h"

#include <algorithm>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/model/seeded_context.h"

namespace strata::engine {
namespace {

double ms_between(Clock::TimePoint from, Clock::TimePoint to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

// While the receiver is behind or nothing runs.
constexpr std::chrono::milliseconds kPause(2);

}  // namespace

Engine::Engine(model::Instance& instance, const text::Tokenizer& tokenizer, EngineHooks hooks,
               const Clock& clock)
    : instance_(instance),
      tokenizer_(tokenizer),
      hooks_(std::move(hooks)),
      clock_(clock),
      sampler_(instance.options().max_out, instance.options().max_context,
               instance.model().info().n_vocab, instance.stream(), instance.plan()),
      runner_(instance, sampler_),
      seeds_(std::random_device{}()) {
  if (tokenizer.n_vocab() > instance.model().info().n_vocab) {
    throw Error(ErrorCode::kCorruptFile,
                format("the tokenizer has {} tokens, the model {} rows of logits",
                       tokenizer.n_vocab(), instance.model().info().n_vocab));
  }
}

Engine::~Engine() = default;

int64_t Engine::now_ns() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(clock_.now().time_since_epoch())
      .count();
}

void Engine::prepare(const std::function<void(Bytes, Bytes)>& progress) {
  instance_.load(progress);
  instance_.with_ledger([&] { sampler_.allocate(); });
  rehearse();
  instance_.seal();
}

// A full chunk through every op, so that what cannot work shows before READY, and the pages of
// buffers and state are there.
void Engine::rehearse() {
  const model::ModelOptions& options = instance_.options();
  const size_t n = static_cast<size_t>(
      std::min<int64_t>(options.chunk, std::max<int64_t>(options.max_context - 1, 1)));
  Request request(wire::kNoRequest, {.ids = std::vector<int32_t>(n, 0), .max_tokens = 1}, 0,
                  clock_.now());
  request.session =
      std::make_unique<model::SessionState>(instance_.model().states(), static_cast<int64_t>(n));
  StepPlan plan;
  plan.push_back({.request = &request, .ids = request.submit.ids, .samples = true});
  const StepResult result = runner_.finish(runner_.submit(std::move(plan)));
  if (result.chosen.at(0) < 0) {
    throw Error(ErrorCode::kCorruptFile,
                "a trial step gave no finite logit: the weights of this file are broken");
  }
}

wire::Ready Engine::ready() const {
  const model::ModelOptions& options = instance_.options();
  return {.limits = {.n_context = static_cast<int32_t>(options.max_context),
                     .max_prompt_tokens = static_cast<int32_t>(options.max_context - 1),
                     .n_slots = options.slots,
                     .n_vocab = std::min(tokenizer_.n_vocab(), instance_.model().info().n_vocab)}};
}

void Engine::make_up_contexts(int64_t n_tokens, uint64_t seed) {
  made_up_tokens_ = n_tokens;
  made_up_seed_ = seed;
}

void Engine::command(wire::RequestId id, wire::Command&& command) {
  {
    const std::lock_guard lock(mutex_);
    incoming_.emplace_back(id, std::move(command));
  }
  wake_.notify_one();
}

void Engine::take_commands() {
  std::vector<Incoming> commands;
  {
    const std::lock_guard lock(mutex_);
    commands.swap(incoming_);
  }
  for (Incoming& incoming : commands) take(incoming.first, std::move(incoming.second));
}

void Engine::take(wire::RequestId id, wire::Command&& command) {
  if (auto* submit = std::get_if<wire::Submit>(&command)) {
    waiting_.push_back(std::make_unique<Request>(id, std::move(*submit), seeds_(), clock_.now()));
  } else if (std::holds_alternative<wire::Cancel>(command)) {
    for (auto& request : waiting_) request->cancelled |= request->id == id;
    for (auto& request : running_) request->cancelled |= request->id == id;
  } else {
    stopping_ = true;
  }
}

void Engine::say(const Request& request, wire::Event&& event) {
  wire::Addressed& addressed = events_.emplace_back();
  addressed.request = request.id;
  addressed.event = std::move(event);
}

void Engine::end(Request& request, wire::Event&& event) {
  say(request, std::move(event));
  // Slot and pages come back at once, though the request stays in its list until the sweep.
  request.session.reset();
  request.ended = true;
}

void Engine::finish(Request& request, wire::Reason reason) {
  if (request.ended) return;
  if (!request.matcher.matched() && reason != wire::Reason::kCancelled) {
    std::string rest = request.matcher.finish();
    if (!rest.empty()) {
      wire::Tokens tokens;
      tokens.bytes = std::move(rest);
      say(request, std::move(tokens));
    }
  }
  const Clock::TimePoint now = clock_.now();
  const Clock::TimePoint started = request.started.value_or(now);
  const Clock::TimePoint first = request.first_token.value_or(now);
  end(request,
      wire::Finished{.reason = reason,
                     .usage = {.prompt_tokens = static_cast<int32_t>(request.submit.ids.size()),
                               .completion_tokens = static_cast<int32_t>(request.answer.size()),
                               .cached_tokens = static_cast<int32_t>(request.n_cached)},
                     .timings = {.queue_ms = ms_between(request.arrived, started),
                                 .prompt_ms = ms_between(started, first),
                                 .decode_ms = ms_between(first, now)}});
}

void Engine::fail(Request& request, ErrorCode code, std::string message, bool retry) {
  if (request.ended) return;
  end(request, wire::Failed{.code = code, .message = std::move(message), .retry = retry});
}

void Engine::drop_cancelled() {
  const auto sweep = [&](auto& list) {
    for (auto& request : list) {
      if (request->cancelled) finish(*request, wire::Reason::kCancelled);
    }
    std::erase_if(list, [](const auto& request) { return request->ended; });
  };
  sweep(waiting_);
  sweep(running_);
  n_running_ = static_cast<int32_t>(running_.size());
  n_waiting_ = static_cast<int32_t>(waiting_.size());
}

// Why the request cannot be taken; empty if it can.
std::string Engine::objection(const wire::Submit& submit) const {
  const int64_t n_context = instance_.options().max_context;
  const int64_t n_prompt = static_cast<int64_t>(submit.ids.size());
  const int32_t n_vocab = instance_.model().info().n_vocab;
  const std::vector<wire::LogitBias>& biases = submit.sampling.logit_bias;
  if (n_prompt == 0) return "the prompt is empty";
  if (submit.max_tokens < 1) {
    return format("{} tokens are asked for; at least 1 is made", submit.max_tokens);
  }
  if (n_prompt + submit.max_tokens > n_context) {
    return format("the prompt has {} tokens and {} are asked for; the context holds {}", n_prompt,
                  submit.max_tokens, n_context);
  }
  if (biases.size() > static_cast<size_t>(wire::kMaxLogitBiases)) {
    return format("there are {} logit biases, at most {} are taken", biases.size(),
                  wire::kMaxLogitBiases);
  }
  const auto in_vocabulary = [&](int32_t id) { return id >= 0 && id < n_vocab; };
  if (!std::ranges::all_of(submit.ids, in_vocabulary) ||
      !std::ranges::all_of(biases, in_vocabulary, &wire::LogitBias::id)) {
    return format("a token id is outside the vocabulary of {}", n_vocab);
  }
  return "";
}

// False: it has to wait for a slot. Refused requests are ended here.
bool Engine::admit(Request& request) {
  const wire::Submit& submit = request.submit;
  if (std::string why = objection(submit); !why.empty()) {
    fail(request, ErrorCode::kInvalidArgument, std::move(why), false);
    return true;
  }
  model::StatePools& pools = instance_.model().states();
  const int64_t n_prompt = static_cast<int64_t>(submit.ids.size());
  const int64_t tokens = n_prompt + submit.max_tokens;
  const int64_t page = pools.spec().page_tokens;
  if (pools.n_free_slots() == 0 || pools.n_free_pages() < (tokens + page - 1) / page) return false;
  request.session = std::make_unique<model::SessionState>(pools, tokens);
  if (made_up_tokens_ > 0) {
    request.n_cached = static_cast<size_t>(std::min(made_up_tokens_, n_prompt - 1));
    model::seed_context(pools, *request.session, std::span(submit.ids).first(request.n_cached),
                        made_up_seed_);
    request.n_read = request.n_cached;
  }
  request.started = clock_.now();
  return true;
}

void Engine::admit() {
  // In order: a request that has to wait is not overtaken for ever by smaller ones.
  while (!waiting_.empty() && admit(*waiting_.front())) {
    std::unique_ptr<Request> request = std::move(waiting_.front());
    waiting_.pop_front();
    if (request->session) running_.push_back(std::move(request));
  }
  n_running_ = static_cast<int32_t>(running_.size());
  n_waiting_ = static_cast<int32_t>(waiting_.size());
}

// A row of every running answer first, then prompts up to the chunk, the oldest first: a long
// prompt never starves the answers.
StepPlan Engine::plan_step() const {
  StepPlan plan;
  size_t room = static_cast<size_t>(instance_.options().chunk);
  for (const bool decoding : {true, false}) {
    for (const std::unique_ptr<Request>& request : running_) {
      if (request->decoding() != decoding || room == 0) continue;
      StepPart part{.request = request.get()};
      if (decoding) {
        part.ids = {request->answer.back()};
        part.samples = true;
      } else {
        const std::vector<int32_t>& ids = request->submit.ids;
        const size_t n = std::min(room, request->n_waiting());
        const auto first = ids.begin() + static_cast<std::ptrdiff_t>(request->n_read);
        part.ids.assign(first, first + static_cast<std::ptrdiff_t>(n));
        part.samples = request->n_read + n == ids.size();
      }
      room -= part.ids.size();
      plan.push_back(std::move(part));
    }
  }
  return plan;
}

void Engine::accept_token(Request& request, int32_t id) {
  if (!request.first_token) request.first_token = clock_.now();
  if (id < 0) {
    fail(request, ErrorCode::kInternal,
         format("no logit of token {} is finite; the weights or the state are broken",
                request.submit.ids.size() + request.answer.size()),
         false);
    return;
  }
  request.answer.push_back(id);
  request.penalties.push(id);
  ++n_answer_tokens_;
  const std::vector<int32_t>& stop_ids = request.submit.stop_ids;
  const bool stops = std::find(stop_ids.begin(), stop_ids.end(), id) != stop_ids.end();
  wire::Tokens tokens{.ids = {id}};
  if (!stops && tokenizer_.contains(id) && !tokenizer_.is_control(id)) {
    tokens.bytes = request.matcher.push(tokenizer_.piece(id));
  }
  say(request, std::move(tokens));
  if (stops) return finish(request, wire::Reason::kStop);
  if (request.matcher.matched()) return finish(request, wire::Reason::kStopString);
  const size_t total = request.submit.ids.size() + request.answer.size();
  if (request.answer.size() >= static_cast<size_t>(request.submit.max_tokens) ||
      total >= static_cast<size_t>(request.session->max_tokens())) {
    finish(request, wire::Reason::kLength);
  }
}

void Engine::accept(const StepPlan& parts, const StepResult& result) {
  size_t next = 0;
  for (const StepPart& part : parts) {
    Request& request = *part.request;
    if (!request.decoding()) {
      request.n_read += part.ids.size();
      n_prompt_tokens_ += part.ids.size();
      wire::Progress progress;
      progress.done = static_cast<int32_t>(request.n_read);
      progress.cached = static_cast<int32_t>(request.n_cached);
      progress.total = static_cast<int32_t>(request.submit.ids.size());
      say(request, progress);
    }
    if (part.samples) accept_token(request, result.chosen[next++]);
  }
}

// A step that failed never happened, so it can be run again as it is.
StepResult Engine::run_twice(const StepPlan& plan) {
  std::string why;
  try {
    return runner_.finish(runner_.submit(plan));
  } catch (const Error& error) {
    ++n_failed_steps_;
    if (error.code() == ErrorCode::kDeviceLost) throw;
    why = error.what();
  } catch (const std::exception& error) {
    ++n_failed_steps_;
    why = error.what();
  }
  log_warning(format("a step failed and is run again: {}", why));
  return runner_.finish(runner_.submit(plan));
}

void Engine::fail_all(const StepPlan& plan, ErrorCode code, const std::string& why) {
  log_error(format("a step failed twice: {}", why));
  for (const StepPart& part : plan) fail(*part.request, code, why, false);
}

void Engine::compute(const StepPlan& plan) {
  StepResult result;
  try {
    result = run_twice(plan);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kDeviceLost) throw;
    return fail_all(plan, error.code(), error.what());
  } catch (const std::exception& error) {
    return fail_all(plan, ErrorCode::kInternal, error.what());
  }
  // The rows are committed; whatever happens now must not run them again.
  accept(plan, result);
}

void Engine::flush() {
  if (events_.empty()) return;
  if (hooks_.emit) hooks_.emit(events_);
  events_.clear();
}

bool Engine::step() {
  take_commands();
  drop_cancelled();
  admit();
  const bool full = hooks_.receiver_full && hooks_.receiver_full();
  const StepPlan plan = full ? StepPlan{} : plan_step();
  if (plan.empty()) {
    flush();
    return false;
  }
  int32_t rows = 0;
  for (const StepPart& part : plan) rows += static_cast<int32_t>(part.ids.size());
  step_rows_ = rows;
  step_since_ns_ = now_ns();
  flush();  // who was refused or cancelled need not wait for the step, nor be lost with it
  compute(plan);
  step_since_ns_ = 0;
  step_rows_ = 0;
  ++n_steps_;
  drop_cancelled();
  flush();
  return true;
}

void Engine::run() {
  while (!stopping_) {
    if (step()) continue;
    if (stopping_) break;  // it was this step that took the Shutdown
    std::unique_lock lock(mutex_);
    const auto any = [&] { return !incoming_.empty(); };
    if (running_.empty() && waiting_.empty()) {
      wake_.wait(lock, any);
    } else {
      wake_.wait_for(lock, kPause, any);
    }
  }
  for (auto& request : running_) fail(*request, ErrorCode::kCancelled, "the engine stops", true);
  for (auto& request : waiting_) fail(*request, ErrorCode::kCancelled, "the engine stops", true);
  drop_cancelled();
  flush();
}

wire::Pulse Engine::pulse() const {
  const int64_t since = step_since_ns_;
  wire::Pulse pulse{.phase = "ready",
                    .step_ms = since == 0 ? 0 : static_cast<int32_t>((now_ns() - since) / 1000000),
                    .step_rows = step_rows_,
                    .n_running = n_running_,
                    .n_waiting = n_waiting_};
  pulse.work = {.prompt_tokens = n_prompt_tokens_,
                .answer_tokens = n_answer_tokens_,
                .steps = n_steps_,
                .failed_steps = n_failed_steps_};
  return pulse;
}

}  // namespace strata::engine
