#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "strata/supervise/engine_client.h"

namespace strata::server::testing {

// An engine client that says what a test wants. With a script each request is answered by it at
// once; without, the test sends the events itself.
class FakeEngine final : public supervise::EngineClient {
 public:
  FakeEngine();

  void set_script(std::vector<wire::Event> script);
  // The answer in pieces, then the end.
  void answer_with(const std::vector<std::string>& pieces,
                   wire::Reason reason = wire::Reason::kStop);
  // From now on submit() throws.
  void throw_at_submit() { throws_ = true; }
  void set_status(const supervise::Status& status);

  wire::RequestId submit(wire::Submit submit, Callbacks callbacks) override;
  void cancel(wire::RequestId request) override;
  supervise::Status status() const override;

  // The n-th request (from 1), as soon as it has come; without ids if none comes for ten seconds.
  wire::Submit wait_for_submit(size_t n = 1);
  bool wait_for_cancel(wire::RequestId id);
  // False: no such request runs.
  bool send(wire::RequestId id, wire::Event event);
  bool send_text(wire::RequestId id, const std::string& text);
  bool restart(wire::RequestId id);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  supervise::Status status_;
  std::vector<wire::Event> script_;
  std::vector<wire::Submit> submits_;
  std::vector<wire::RequestId> cancelled_;
  std::map<wire::RequestId, Callbacks> live_;
  wire::RequestId last_ = 0;
  std::atomic<bool> throws_ = false;
};

}  // namespace strata::server::testing
