#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "strata/supervise/engine_client.h"
#include "strata/supervise/launcher.h"
#include "strata/supervise/requests.h"
#include "strata/supervise/restart_policy.h"
#include "strata/wire/link.h"

namespace strata::supervise {

struct Settings {
  int max_requests = 256;  // accepted at the same time; more are refused
  // Pulses come twice a second from a thread that does not compute.
  std::chrono::milliseconds silence_limit{10'000};
  // A step may take this long: far above what the slowest machine needs for a row, and twice what
  // the engine gives it before it withdraws the step.
  std::chrono::milliseconds step_limit{120'000};
  std::chrono::milliseconds step_limit_per_row{2'000};
  // Between Shutdown and the kill.
  std::chrono::milliseconds shutdown_limit{2'000};
  int lost_after_pulses = 20;
  // The state is kDegraded as long as the last failed step is not older than this.
  std::chrono::milliseconds degraded_after_failure{60'000};
  // And after this many answers in a row that failed for the engine's fault, until one is good.
  int degraded_after_answers = 3;
  // Once there has been a ready engine, a request waits this long for the next one.
  std::chrono::milliseconds restart_patience{10'000};
  // A request that comes this long after giving up has the engine started once more.
  std::chrono::milliseconds second_chance_after{60'000};
  RestartPolicy::Settings restart;
  // Called once, by the thread of the callbacks, when the first engine is ready. May be empty.
  std::function<void()> first_ready;
};

// Keeps an engine running: starts it, watches it, starts another when it is gone, and carries the
// requests over. Owns one thread, which starts the engines and makes all callbacks.
class Supervisor final : public EngineClient {
 public:
  // Starts the first engine and returns at once.
  Supervisor(std::unique_ptr<Launcher> launcher, const Settings& settings);
  ~Supervisor() override;
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  wire::RequestId submit(wire::Submit submit, Callbacks callbacks) override;
  void cancel(wire::RequestId request) override;
  Status status() const override;

  // Ends what still runs with an error, then the engine; returns when it is gone. Any thread but
  // that of the callbacks; the second call does nothing.
  void stop();

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  // What is known of the engine that runs; used by the thread alone.
  struct Engine {
    std::unique_ptr<EngineProcess> process;
    TimePoint started;
    TimePoint last_pulse;
    wire::Pulse pulse;
    TimePoint last_failed_step;
    int n_failed_answers = 0;  // in a row
    std::string last_failure;  // of these, in words
    std::optional<wire::Leaving> leaving;
    bool ready = false;
    bool answered = false;
  };

  class Connection;

  void run() noexcept;
  void supervise();
  Death live_one(uint32_t incarnation, bool step_down);
  Death converse(Engine& engine, wire::Link& link);
  Death ended(Engine& engine) const;
  std::optional<std::string> stall(const Engine& engine, TimePoint now) const;
  void on_event(Engine& engine, wire::RequestId request, wire::Event&& event);
  void on_ready(Engine& engine, wire::Ready&& ready);
  void on_pulse(Engine& engine, wire::Pulse&& pulse);
  void judge_locked(const Engine& engine);
  void shut_down(Engine& engine, wire::Link& link);
  void settle(const Death& death, const RestartPolicy::Verdict& verdict);
  void wait_for_restart(std::chrono::milliseconds delay);
  bool wait_for_second_chance();
  void take_second_chance_locked();
  std::vector<Requests::Call> take_ended_locked();
  void send_waiting_locked();
  static void make(std::vector<Requests::Call> calls);

  const std::unique_ptr<Launcher> launcher_;
  const Settings settings_;
  RestartPolicy policy_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  Requests requests_;
  Status status_;
  bool stopping_ = false;
  bool ready_ = false;          // link_ leads to an engine that takes requests
  bool has_chance_ = false;     // the thread waits for a request that asks for another start
  TimePoint gave_up_;           // if has_chance_
  wire::Link* link_ = nullptr;  // of the engine that runs, if any
  wire::RequestId last_request_ = wire::kNoRequest;
  std::mt19937_64 seeds_{std::random_device{}()};

  std::thread thread_;
};

}  // namespace strata::supervise
