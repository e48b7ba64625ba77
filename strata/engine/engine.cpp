#include "strata/engine/engine.h"

#include <algorithm>
#include <map>
#include <set>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/engine/admission.h"
#include "strata/engine/keep_points.h"
#include "strata/engine/memory_report.h"
#include "strata/engine/schedule.h"
#include "strata/engine/window.h"
#include "strata/model/seeded_context.h"

namespace strata::engine {
namespace {

// While the receiver is behind or nothing runs.
constexpr std::chrono::milliseconds kPause(2);

}  // namespace

Engine::Engine(model::Instance& instance, const text::Tokenizer& tokenizer, EngineHooks hooks,
               const EngineOptions& options, const Clock& clock)
    : instance_(instance),
      tokenizer_(tokenizer),
      hooks_(std::move(hooks)),
      options_(options),
      clock_(clock),
      answers_(tokenizer, clock),
      sampler_(instance.options().max_out, instance.options().max_context,
               instance.model().info().n_vocab, instance.stream(), instance.plan()),
      runner_(instance, sampler_, answers_, options.step_limit),
      forms_(tokenizer, instance.model().info().n_vocab),
      drafter_(instance, sampler_, options.drafts, clock),
      cache_(instance, options.cache),
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
  instance_.with_ledger([&] {
    sampler_.allocate();
    cache_.allocate();
  });
  rehearse();
  if (drafter_.on() && options_.drafts.automatic) measure_windows();
  instance_.seal();
}

// What a window of several rows costs, before the first answer depends on it: the least of some, as
// whatever else runs can only add to it. Steps of answers go on measuring.
void Engine::measure_windows() {
  constexpr double kBudgetMs = 25;  // for a size
  constexpr int kMostRounds = 24;
  const auto least = [](const std::vector<double>& ms) { return *std::ranges::min_element(ms); };
  const model::ModelOptions& options = instance_.options();
  const int64_t context = std::min<int64_t>(64, options.max_context - options.window);
  if (context < 1) return;
  const int most = std::min(options.window, options.chunk);
  // The first one is there to learn how long a round takes.
  double one_ms = least(time_window(instance_, context, 1, 1, 1, clock_).one_ms);
  std::map<int, double> window_ms;
  for (const int rows : std::set<int>{2, 3, 4, (most + 2) / 2, most}) {
    if (rows < 2 || rows > most) continue;
    const int rounds = static_cast<int>(kBudgetMs / (one_ms * (rows + 1)));
    const WindowTimes times =
        time_window(instance_, context, rows, std::clamp(rounds, 1, kMostRounds), 1, clock_);
    one_ms = std::min(one_ms, least(times.one_ms));
    window_ms[rows] = least(times.window_ms);
  }
  StepCosts& costs = drafter_.costs();
  costs.set_step(1, one_ms);
  for (const auto& [rows, ms] : window_ms) costs.set_step(rows, ms);
  if (instance_.model().draft_states() == nullptr || options.chunk < 2) return;
  const DraftTimes drafts =
      time_drafts(instance_, one_ms * kMostRounds > kBudgetMs ? 2 : kMostRounds, clock_);
  costs.set_drafts(drafts.first_ms, drafts.next_ms);
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
  plan.push_back({.request = &request, .ids = request.submit.ids, .n_outputs = 1});
  const StepResult result = runner_.finish(runner_.submit(std::move(plan)));
  if (result.parts.at(0).tokens.at(0) < 0) {
    throw Error(ErrorCode::kCorruptFile,
                "a trial step gave no finite logit: the weights of this file are broken");
  }
}

wire::Ready Engine::ready() const {
  const model::ModelOptions& options = instance_.options();
  return {.limits = {.n_context = static_cast<int32_t>(options.max_context),
                     .max_prompt_tokens = static_cast<int32_t>(options.max_context - 1),
                     .n_slots = options.slots,
                     .n_vocab = std::min(tokenizer_.n_vocab(), instance_.model().info().n_vocab)},
          .memory = memory_plan(instance_)};
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
    Request& request = *waiting_.emplace_back(
        std::make_unique<Request>(id, std::move(*submit), seeds_(), clock_.now()));
    if (!request.submit.grammar.empty()) request.form = forms_.ask(request.submit.grammar);
  } else if (std::holds_alternative<wire::Cancel>(command)) {
    for (auto& request : waiting_) request->cancelled |= request->id == id;
    for (auto& request : running_) request->cancelled |= request->id == id;
  } else {
    stopping_ = true;
  }
}

void Engine::drop_cancelled() {
  const auto sweep = [&](auto& list) {
    for (auto& request : list) {
      if (request->cancelled) answers_.finish(*request, wire::Reason::kCancelled);
      if (!request->ended || request->failed) continue;
      keep(*request);
      if (request->session) cache_.want_file(request->session->ids());
    }
    std::erase_if(list, [](const auto& request) { return request->ended; });
  };
  sweep(waiting_);
  sweep(running_);
  n_running_ = static_cast<int32_t>(running_.size());
  n_waiting_ = static_cast<int32_t>(waiting_.size());
}

// False: it has to wait for a slot. Refused requests are ended here.
bool Engine::admit(Request& request) {
  const wire::Submit& submit = request.submit;
  if (std::string why = objection(submit, instance_); !why.empty()) {
    answers_.fail(request, ErrorCode::kInvalidArgument, std::move(why));
    return true;
  }
  if (request.form != nullptr && request.form->masks == nullptr) {
    answers_.fail(request, request.form->code, request.form->error);
    return true;
  }
  if (!has_room(submit, instance_.model().states())) return false;
  start(request);
  return true;
}

void Engine::start(Request& request) {
  model::StatePools& pools = instance_.model().states();
  const auto n_prompt = static_cast<int64_t>(request.submit.ids.size());
  const auto new_session = [&] {
    request.session =
        std::make_unique<model::SessionState>(pools, n_prompt + request.submit.max_tokens);
  };
  new_session();
  request.guide =
      Guide(request.submit, request.form == nullptr ? nullptr : request.form->masks, tokenizer_);
  request.started = clock_.now();
  answers_.replay(request);
  if (request.ended) return;
  drafter_.begin(request);
  if (made_up_tokens_ > 0) {
    request.n_cached = static_cast<size_t>(std::min(made_up_tokens_, n_prompt - 1));
    model::seed_context(pools, *request.session, std::span(request.text).first(request.n_cached),
                        made_up_seed_);
    request.n_read = request.n_cached;
    return;
  }
  if (!cache_.on()) return;
  try {
    resume_kept(request);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::kDeviceLost) throw;
    log_warning(format("a kept state could not be used: {}", e.what()));
    request.drafting.cells.reset();
    request.session.reset();
    new_session();
  }
  request.keep_at = keep_points(request.text, request.submit.boundaries, request.n_cached,
                                cache_.n_common(request.text),
                                static_cast<size_t>(instance_.options().chunk), tokenizer_);
}

void Engine::resume_kept(Request& request) {
  std::unique_ptr<model::SessionState> cells;
  if (request.drafting.follows) {
    cells = std::make_unique<model::SessionState>(*instance_.model().draft_states(),
                                                  request.session->max_tokens());
  }
  request.n_cached = cache_.resume(request.text, *request.session, cells.get());
  request.n_read = request.n_cached;
  n_cached_tokens_ += request.n_cached;
  request.drafting.cells = std::move(cells);
}

void Engine::keep(const Request& request) {
  if (!request.session || made_up_tokens_ > 0) return;
  try {
    cache_.keep(*request.session, request.drafting.cells.get());
  } catch (const Error& e) {
    if (e.code() == ErrorCode::kDeviceLost) throw;
    log_warning(format("a state could not be kept: {}", e.what()));
  }
  n_kept_ = cache_.n_kept();
}

// When nobody waits: a file takes a moment.
void Engine::write_states() {
  try {
    while (!has_commands() && cache_.write_one()) {
    }
  } catch (const Error& e) {
    if (e.code() == ErrorCode::kDeviceLost) throw;
    log_warning(format("a state could not be written: {}", e.what()));
  }
}

bool Engine::has_commands() {
  const std::lock_guard lock(mutex_);
  return !incoming_.empty();
}

void Engine::keep_prompts(const StepPlan& plan) {
  for (const StepPart& part : plan) {
    Request& request = *part.request;
    if (request.keep_at.empty() || request.n_read < request.keep_at.front()) continue;
    request.keep_at.erase(request.keep_at.begin());
    if (request.ended) continue;
    keep(request);
    // The next turn goes on from here where the template shows an answer otherwise than it was
    // written, without its reasoning for example.
    const std::vector<int32_t>& starts = request.submit.boundaries;
    if (!starts.empty() && request.n_read == static_cast<size_t>(starts.back())) {
      cache_.want_file(request.session->ids());
    }
  }
}

void Engine::admit() {
  // In order: a request that has to wait is not overtaken for ever by smaller ones. One whose
  // grammar is being compiled keeps its place and lets others pass.
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    Request& request = **it;
    if (request.form != nullptr && !request.form->done.load(std::memory_order_acquire)) {
      ++it;
      continue;
    }
    if (!admit(request)) break;
    if (!request.ended) running_.push_back(std::move(*it));
    it = waiting_.erase(it);
  }
  n_running_ = static_cast<int32_t>(running_.size());
  n_waiting_ = static_cast<int32_t>(waiting_.size());
}

void Engine::accept(const StepPlan& parts, const StepResult& result) {
  for (size_t i = 0; i < parts.size(); ++i) {
    Request& request = *parts[i].request;
    if (!request.decoding()) {
      request.n_read += parts[i].ids.size();
      n_prompt_tokens_ += parts[i].ids.size();
      answers_.progress(request);
    }
    const StepResult::Part& part = result.parts[i];
    for (size_t t = 0; t < part.tokens.size(); ++t) {
      answers_.accept(request, part.tokens[t],
                      part.logprobs.empty() ? wire::TokenLogprobs() : part.logprobs[t]);
    }
  }
}

// A step that failed never happened, so it can be run again as it is.
StepResult Engine::run_twice(const StepPlan& plan) {
  std::string why;
  try {
    return runner_.finish(runner_.submit(plan));
  } catch (Error& error) {
    ++n_failed_steps_;
    if (error.code() == ErrorCode::kDeviceLost) {
      error.with(step_text(plan));
      throw;
    }
    why = error.what();
  } catch (const std::exception& error) {
    ++n_failed_steps_;
    why = error.what();
  }
  log_warning(format("{} failed and is run again: {}", step_text(plan), why));
  step_since_ns_ = now_ns();
  // The slower ways have the same bits, and less that can fail.
  struct Caution {
    model::Model& model;
    explicit Caution(model::Model& m) : model(m) { model.set_cautious(true); }
    ~Caution() { model.set_cautious(false); }
  } caution(instance_.model());
  return runner_.finish(runner_.submit(plan));
}

void Engine::fail_all(const StepPlan& plan, ErrorCode code, const std::string& why) {
  log_error(format("{} failed twice: {}", step_text(plan), why));
  for (const StepPart& part : plan) answers_.fail(*part.request, code, why);
}

void Engine::compute(const StepPlan& plan) {
  const Clock::TimePoint begun = clock_.now();
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
  const std::chrono::duration<double, std::milli> time = clock_.now() - begun;
  drafter_.learn(plan, result, time.count());
  int answer_rows = 0;
  for (const StepPart& part : plan) {
    if (part.decodes) answer_rows += static_cast<int>(part.ids.size());
  }
  pace_.add(answer_rows, result.n_rows - answer_rows, time.count(), drafter_.costs());
  accept(plan, result);
  flush();  // what is known need not wait for guesses, nor for copies
  {
    const StepBound bound(instance_.waits(), options_.step_limit, result.n_rows);
    drafter_.draft(plan, result);
  }
  keep_prompts(plan);
  const std::lock_guard lock(mutex_);
  drafts_ = drafter_.totals();
  experts_ = expert_reads(instance_.model());
}

StepPlan Engine::plan_rows() const {
  const auto chunk = static_cast<size_t>(instance_.options().chunk);
  const bool answers_run =
      std::ranges::any_of(running_, [](const auto& request) { return request->decoding(); });
  return plan_step(running_, chunk, pace_.rows(chunk, answers_run));
}

bool Engine::step() {
  take_commands();
  drop_cancelled();
  admit();
  const bool full = hooks_.receiver_full && hooks_.receiver_full();
  const StepPlan plan = full ? StepPlan{} : plan_rows();
  if (plan.empty()) {
    flush();
    if (running_.empty()) write_states();
    return false;
  }
  int32_t rows = 0;
  for (const StepPart& part : plan) {
    rows += static_cast<int32_t>(part.ids.size());
    // Should this step be the engine's last, the front knows who was in it.
    if (!std::exchange(part.request->begun, true)) answers_.progress(*part.request);
  }
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
  for (auto& request : running_) answers_.fail(*request, ErrorCode::kCancelled, "the engine stops");
  for (auto& request : waiting_) answers_.fail(*request, ErrorCode::kCancelled, "the engine stops");
  drop_cancelled();
  flush();
  write_states();
}

wire::Pulse Engine::pulse() const {
  const int64_t since = step_since_ns_;
  wire::Pulse pulse{.phase = "ready",
                    .step_ms = since == 0 ? 0 : static_cast<int32_t>((now_ns() - since) / 1000000),
                    .step_rows = step_rows_,
                    .n_running = n_running_,
                    .n_waiting = n_waiting_};
  pulse.n_kept = n_kept_;
  pulse.work = {.prompt_tokens = n_prompt_tokens_,
                .cached_tokens = n_cached_tokens_,
                .answer_tokens = answers_.n_tokens(),
                .steps = n_steps_,
                .failed_steps = n_failed_steps_,
                .masks = sampler_.n_masks(),
                .mask_ns = sampler_.mask_ns()};
  pulse.degraded = options_.degraded;
  for (const device::Feature feature : device::kFeatures) {
    pulse.features.push_back({std::string(device::name(feature)), 0});
  }
  for (const device::Trip& trip : instance_.trips().list()) {
    ++pulse.features[static_cast<size_t>(trip.feature)].n_trips;
    pulse.degraded.push_back(
        format("{} off on device {}: {}", device::name(trip.feature), trip.device.value, trip.why));
  }
  const std::lock_guard lock(mutex_);
  pulse.work.drafts = drafts_;
  pulse.work.experts = experts_;
  return pulse;
}

}  // namespace strata::engine
