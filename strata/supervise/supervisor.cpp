#include "strata/supervise/supervisor.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>
#include <variant>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/log.h"

namespace strata::supervise {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

// How often the watch looks up when nothing happens.
constexpr milliseconds kTurn{100};

const wire::Failed kStopped{ErrorCode::kResourceExhausted, "the server is shutting down"};

// What a request may fail with that says something about the engine: broken weights or a broken
// device do it to the next one, too.
bool is_engines_fault(ErrorCode code) {
  return code == ErrorCode::kInternal || code == ErrorCode::kDevice || code == ErrorCode::kIo ||
         code == ErrorCode::kCorruptFile;
}

milliseconds since(SteadyClock::time_point then) {
  return std::chrono::duration_cast<milliseconds>(SteadyClock::now() - then);
}

}  // namespace

Supervisor::Supervisor(std::unique_ptr<Launcher> launcher, const Settings& settings)
    : launcher_(std::move(launcher)), settings_(settings), policy_(settings.restart) {
  thread_ = std::thread([this] { run(); });
}

Supervisor::~Supervisor() { stop(); }

wire::RequestId Supervisor::submit(wire::Submit submit, Callbacks callbacks) {
  std::optional<wire::Failed> refusal;
  wire::RequestId id = wire::kNoRequest;
  {
    const std::lock_guard lock(mutex_);
    id = ++last_request_;
    take_second_chance_locked();
    if (stopping_) {
      refusal = kStopped;
    } else if (status_.state == State::kFailed) {
      refusal = wire::Failed{ErrorCode::kResourceExhausted,
                             format("the engine has failed: {}", status_.reasons.front())};
    } else if (requests_.size() >= static_cast<size_t>(settings_.max_requests)) {
      refusal = wire::Failed{ErrorCode::kResourceExhausted,
                             format("{} requests are waiting or running already, the limit is {}",
                                    requests_.size(), settings_.max_requests)};
    } else {
      // Another engine than the first may have to go on with the answer.
      if (!submit.sampling.seed) submit.sampling.seed = seeds_();
      requests_.add(id, std::move(submit), std::move(callbacks), SteadyClock::now());
      send_waiting_locked();
    }
  }
  if (refusal) callbacks.on_event(std::move(*refusal));
  return id;
}

void Supervisor::cancel(wire::RequestId request) {
  const std::lock_guard lock(mutex_);
  if (requests_.cancel(request)) {
    if (link_ != nullptr) link_->send(request, wire::Command(wire::Cancel{}));
  } else {
    // The thread ends it: callbacks come from there alone.
    if (link_ != nullptr) link_->wake();
    changed_.notify_all();
  }
}

Status Supervisor::status() const {
  const std::lock_guard lock(mutex_);
  Status status = status_;
  status.n_requests = static_cast<int>(requests_.size());
  return status;
}

void Supervisor::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (link_ != nullptr) link_->wake();
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Supervisor::send_waiting_locked() {
  if (!ready_) return;
  requests_.send_waiting([&](wire::RequestId id, const wire::Submit& submit) {
    link_->send(id, wire::Command(submit));
  });
}

void Supervisor::make(std::vector<Requests::Call> calls) {
  for (Requests::Call& call : calls) call();
}

void Supervisor::run() noexcept {
  try {
    supervise();
  } catch (const std::exception& e) {
    log_error(format("the watch over the engine ended: {}", e.what()));
    const std::lock_guard lock(mutex_);
    status_.state = State::kFailed;
    status_.reasons = {e.what()};
    status_.exit_code = exit_code(ErrorCode::kInternal);
  }
  std::vector<Requests::Call> calls;
  {
    const std::lock_guard lock(mutex_);
    calls = requests_.end_all(kStopped);
  }
  for (Requests::Call& call : calls) {
    try {
      call();
    } catch (const std::exception& e) {
      log_error(format("the end of a request could not be told: {}", e.what()));
    }
  }
}

void Supervisor::supervise() {
  bool step_down = false;
  for (uint32_t incarnation = 1;; ++incarnation) {
    const Death death = live_one(incarnation, step_down);
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    const RestartPolicy::Verdict verdict = policy_.on_death(death);
    step_down = verdict.step_down;
    settle(death, verdict);
    if (verdict.give_up) {
      log_error(format("engine {}; not started again", verdict.reason));
      if (!wait_for_second_chance()) return;
      log_info("a request asks for the engine: one more start");
      continue;
    }
    log_warning(format("engine {}; next start in {} ms{}", verdict.reason, verdict.delay.count(),
                       step_down ? ", with less of what may hang" : ""));
    wait_for_restart(verdict.delay);
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
  }
}

// Lets the other threads reach a link for as long as it is there, whatever ends that.
class Supervisor::Connection {
 public:
  Connection(Supervisor& owner, wire::Link& link) : owner_(owner) {
    const std::lock_guard lock(owner_.mutex_);
    owner_.link_ = &link;
  }
  ~Connection() {
    const std::lock_guard lock(owner_.mutex_);
    owner_.link_ = nullptr;
    owner_.ready_ = false;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

 private:
  Supervisor& owner_;
};

Death Supervisor::live_one(uint32_t incarnation, bool step_down) {
  Engine engine;
  Death death;
  try {
    engine.process = launcher_->launch(incarnation, step_down);
  } catch (const Error& e) {
    death.how = Death::How::kLaunch;
    death.detail = e.what();
    return death;
  }
  engine.started = engine.last_pulse = SteadyClock::now();
  log_info(format("engine {} started, process {}", incarnation, engine.process->id()));
  {
    wire::Link link(engine.process->take_transport(), incarnation);
    const Connection connection(*this, link);
    death = converse(engine, link);
  }
  {
    const std::lock_guard lock(mutex_);
    death.had_work = requests_.any_sent();
  }
  death.was_ready = engine.ready;
  death.answered = engine.answered;
  death.phase = engine.pulse.phase;
  death.uptime = since(engine.started);
  return death;
}

// Until the engine is gone, whoever ended it.
Death Supervisor::converse(Engine& engine, wire::Link& link) {
  Death death;
  const wire::Link::OnFrame on_frame = [&](const wire::Frame& frame, std::string_view payload) {
    on_event(engine, frame.request, wire::decode_event(frame, payload));
  };
  try {
    while (link.turn(kTurn, on_frame)) {
      std::vector<Requests::Call> calls;
      bool stopping = false;
      {
        const std::lock_guard lock(mutex_);
        calls = take_ended_locked();
        stopping = stopping_;
      }
      make(std::move(calls));
      if (stopping) {
        shut_down(engine, link);
        return death;
      }
      if (const auto why = stall(engine, SteadyClock::now())) {
        engine.process->kill();
        engine.process->wait_exit(std::chrono::seconds(5));
        death.how = Death::How::kStalled;
        death.detail = *why;
        // Silence is no step that hangs.
        if (engine.pulse.step_ms > 0) death.hang = format("a step: {}", engine.pulse.wait);
        return death;
      }
    }
  } catch (const Error& e) {
    engine.process->kill();
    death.how = Death::How::kBroken;
    death.detail = e.message();
    return death;
  }
  return ended(engine);
}

// The channel is closed, so the process is ending; one that is not has lost its mind.
Death Supervisor::ended(Engine& engine) const {
  Death death;
  const std::optional<Exit> exit = engine.process->wait_exit(settings_.shutdown_limit);
  if (!exit) {
    engine.process->kill();
    death.how = Death::How::kStalled;
    death.detail = "closed the channel and stayed";
    return death;
  }
  death.how = exit->by_signal ? Death::How::kSignal : Death::How::kExit;
  death.code = exit->code;
  if (!exit->by_signal && engine.leaving) {
    death.error = engine.leaving->code;
    death.detail = std::move(engine.leaving->message);
    death.hang = std::move(engine.leaving->hang);
  }
  return death;
}

std::optional<std::string> Supervisor::stall(const Engine& engine, TimePoint now) const {
  if (now - engine.last_pulse > settings_.silence_limit)
    return format("was silent for {} ms", since(engine.last_pulse).count());
  const auto limit = settings_.step_limit + settings_.step_limit_per_row * engine.pulse.step_rows;
  if (milliseconds(engine.pulse.step_ms) > limit)
    return format("hung in a step of {} rows for {} ms{}{}", engine.pulse.step_rows,
                  engine.pulse.step_ms, engine.pulse.wait.empty() ? "" : ", waiting for ",
                  engine.pulse.wait);
  return std::nullopt;
}

void Supervisor::on_event(Engine& engine, wire::RequestId request, wire::Event&& event) {
  if (auto* ready = std::get_if<wire::Ready>(&event)) return on_ready(engine, std::move(*ready));
  if (auto* pulse = std::get_if<wire::Pulse>(&event)) return on_pulse(engine, std::move(*pulse));
  if (auto* leaving = std::get_if<wire::Leaving>(&event)) {
    engine.leaving = std::move(*leaving);
    return;
  }
  if (const auto* finished = std::get_if<wire::Finished>(&event)) {
    engine.answered = true;
    if (finished->reason != wire::Reason::kCancelled) engine.n_failed_answers = 0;
  }
  const auto* failed = std::get_if<wire::Failed>(&event);
  if (failed != nullptr && is_engines_fault(failed->code)) {
    ++engine.n_failed_answers;
    engine.last_failure = failed->message;
  }
  std::optional<Requests::Call> call;
  {
    const std::lock_guard lock(mutex_);
    judge_locked(engine);
    call = requests_.on_event(request, std::move(event));
  }
  if (call) (*call)();
}

void Supervisor::on_ready(Engine& engine, wire::Ready&& ready) {
  if (engine.ready) return;
  engine.ready = true;
  log_info(format("engine ready after {} ms: {} slots, context of {} tokens",
                  since(engine.started).count(), ready.limits.n_slots, ready.limits.n_context));
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = status_.limits.n_context == 0;
    status_.limits = ready.limits;
    status_.memory = std::make_shared<const wire::MemoryPlan>(std::move(ready.memory));
    judge_locked(engine);
    ready_ = true;
    send_waiting_locked();
  }
  if (first && settings_.first_ready) settings_.first_ready();
}

void Supervisor::on_pulse(Engine& engine, wire::Pulse&& pulse) {
  const TimePoint now = SteadyClock::now();
  if (pulse.work.failed_steps > engine.pulse.work.failed_steps) engine.last_failed_step = now;
  engine.last_pulse = now;
  engine.pulse = std::move(pulse);
  const bool idle = engine.ready && engine.pulse.n_running == 0 && engine.pulse.n_waiting == 0;
  std::vector<Requests::Call> calls;
  {
    const std::lock_guard lock(mutex_);
    status_.pulse = engine.pulse;
    judge_locked(engine);
    if (idle) calls = requests_.on_idle_pulse(settings_.lost_after_pulses);
  }
  make(std::move(calls));
}

// How an engine is that takes requests.
void Supervisor::judge_locked(const Engine& engine) {
  if (!engine.ready) return;
  status_.reasons.clear();
  const wire::Work& work = engine.pulse.work;
  status_.reasons = engine.pulse.degraded;
  if (work.failed_steps > 0 &&
      SteadyClock::now() - engine.last_failed_step <= settings_.degraded_after_failure) {
    status_.reasons.push_back(format("{} of {} steps have failed, the last within {} s",
                                     work.failed_steps, work.steps,
                                     settings_.degraded_after_failure.count() / 1000));
  }
  if (engine.n_failed_answers >= settings_.degraded_after_answers) {
    status_.reasons.push_back(format("the last {} answers have failed: {}", engine.n_failed_answers,
                                     engine.last_failure));
  }
  status_.state = status_.reasons.empty() ? State::kReady : State::kDegraded;
}

void Supervisor::shut_down(Engine& engine, wire::Link& link) {
  std::vector<Requests::Call> calls;
  {
    const std::lock_guard lock(mutex_);
    calls = requests_.end_all(kStopped);
  }
  make(std::move(calls));
  link.send(wire::kNoRequest, wire::Command(wire::Shutdown{}));
  const auto deadline = SteadyClock::now() + settings_.shutdown_limit;
  // What it still says concerns nobody, but a full socket must not keep it from ending.
  while (SteadyClock::now() < deadline && link.turn(kTurn, [](const auto&, auto) {})) {
  }
  if (!engine.process->wait_exit(milliseconds(200))) {
    log_warning("the engine did not end when asked, and is killed");
    engine.process->kill();
  }
  engine.process->wait_exit(std::chrono::seconds(5));
}

void Supervisor::settle(const Death& death, const RestartPolicy::Verdict& verdict) {
  std::vector<Requests::Call> calls;
  {
    const std::lock_guard lock(mutex_);
    const bool ever_ready = status_.limits.n_context > 0;
    status_.reasons = {verdict.reason};
    status_.pulse = {};
    if (verdict.give_up) {
      status_.state = State::kFailed;
      const bool told = death.how == Death::How::kExit && death.code != 0;
      const bool launched = death.how != Death::How::kLaunch;
      status_.exit_code =
          told ? death.code : exit_code(launched ? ErrorCode::kInternal : ErrorCode::kIo);
      calls = requests_.end_all(
          {ErrorCode::kResourceExhausted, format("the engine has failed: {}", verdict.reason)});
    } else {
      // Before the first Ready nobody has been served yet, so nothing is "re"started.
      status_.state = ever_ready ? State::kRestarting : State::kStarting;
      ++status_.n_restarts;
      calls = requests_.on_death(describe(death), SteadyClock::now());
    }
  }
  make(std::move(calls));
}

void Supervisor::wait_for_restart(milliseconds delay) {
  const auto deadline = SteadyClock::now() + delay;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    std::vector<Requests::Call> calls = take_ended_locked();
    if (!calls.empty()) {
      lock.unlock();
      make(std::move(calls));
      lock.lock();
      continue;
    }
    const TimePoint now = SteadyClock::now();
    if (now >= deadline) return;
    changed_.wait_until(lock, std::min<TimePoint>(deadline, now + kTurn));
  }
}

// Those that end without a word of an engine: cancelled, or tired of waiting for one.
std::vector<Requests::Call> Supervisor::take_ended_locked() {
  std::vector<Requests::Call> calls = requests_.take_unsent();
  // How long the first engine may take is for its model to say.
  if (ready_ || status_.limits.n_context == 0) return calls;
  const wire::Failed failed{ErrorCode::kResourceExhausted,
                            format("the engine is being started again ({})",
                                   status_.reasons.empty() ? "" : status_.reasons.front())};
  std::vector<Requests::Call> late =
      requests_.take_waiting_since_before(SteadyClock::now() - settings_.restart_patience, failed);
  std::move(late.begin(), late.end(), std::back_inserter(calls));
  return calls;
}

// After giving up. False: there will be no other engine. Whatever was wrong with the machine or the
// file may have been put right, which only another start can tell; a minute between two of them is
// no load.
bool Supervisor::wait_for_second_chance() {
  std::unique_lock lock(mutex_);
  // Without a first engine there is nothing to go on with, and the program ends.
  if (status_.limits.n_context == 0) return false;
  gave_up_ = SteadyClock::now();
  has_chance_ = true;
  changed_.wait(lock, [this] { return stopping_ || !has_chance_; });
  has_chance_ = false;
  return !stopping_;
}

void Supervisor::take_second_chance_locked() {
  if (stopping_ || !has_chance_) return;
  if (SteadyClock::now() - gave_up_ < settings_.second_chance_after) return;
  has_chance_ = false;
  status_.state = State::kRestarting;
  ++status_.n_restarts;
  changed_.notify_all();
}

}  // namespace strata::supervise
