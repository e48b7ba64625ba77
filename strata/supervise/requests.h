#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "strata/supervise/engine_client.h"
#include "strata/wire/messages.h"

namespace strata::supervise {

// The requests that have not ended, oldest first, and what becomes of each when its engine dies.
// Guarded by its owner's mutex; callbacks are handed out, to be called without it.
class Requests {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // One call to make: the callbacks of an ended request are moved out, those of a running one stay
  // here, where only take_*() and on_*() remove them.
  struct Call {
    EngineClient::Callbacks ended;
    const EngineClient::Callbacks* running = nullptr;
    std::optional<wire::Event> event;  // none: on_restart
    void operator()();
  };

  size_t size() const { return entries_.size(); }
  // From `now` on it waits for an engine.
  void add(wire::RequestId id, wire::Submit submit, EngineClient::Callbacks callbacks,
           TimePoint now);

  // Hands over what waits for an engine, in order, and counts it as sent. Cancelled ones are left
  // out; one that `send` throws an Error for ends with it, and the others go on.
  void send_waiting(const std::function<void(wire::RequestId, const wire::Submit&)>& send);

  // True if an engine has it and must be told.
  bool cancel(wire::RequestId id);
  // Those that were cancelled before an engine had them, and those that could not be sent.
  std::vector<Call> take_unsent();
  // Those that have waited for an engine since before `limit`, ended with `failed`.
  std::vector<Call> take_waiting_since_before(TimePoint limit, const wire::Failed& failed);

  // Of an unknown or ended request: nothing.
  std::optional<Call> on_event(wire::RequestId id, wire::Event&& event);

  // A pulse said that the engine runs nothing. Requests that hear nothing over `limit` of these are
  // lost, and end with an error.
  std::vector<Call> on_idle_pulse(int limit);

  // The engine died for `reason`, `now`. Cancelled requests end; the others wait for the next
  // engine, and go on there behind the tokens that their client has seen; a request that was at
  // work in two dying engines ends with an error. Those that had to wait while others were at work
  // are none of it.
  std::vector<Call> on_death(const std::string& reason, TimePoint now);

  bool any_sent() const;
  // Ends all with this event.
  std::vector<Call> end_all(const wire::Failed& failed);

 private:
  struct Entry {
    wire::Submit submit;
    EngineClient::Callbacks callbacks;
    bool sent = false;  // the present engine has it
    bool cancelled = false;
    std::optional<wire::Failed> refusal;  // it could not be sent
    int n_runs = 0;                       // engines that died of it, or may have
    bool begun = false;                   // the present engine has told of it
    int n_idle_pulses = 0;                // since it was heard of
    TimePoint waiting_since;              // if not sent
  };
  using Map = std::map<wire::RequestId, Entry>;

  Call end(Map::iterator it, wire::Event event);

  Map entries_;
};

}  // namespace strata::supervise
