#include "strata/server/testing/fake_engine.h"

#include <algorithm>
#include <new>
#include <utility>
#include <variant>

namespace strata::server::testing {

FakeEngine::FakeEngine() {
  status_.state = supervise::State::kReady;
  status_.pulse.phase = "ready";
  status_.limits = {512, 511, 4, 258};
}

void FakeEngine::set_script(std::vector<wire::Event> script) { script_ = std::move(script); }

void FakeEngine::answer_with(const std::vector<std::string>& pieces, wire::Reason reason) {
  std::vector<wire::Event> script(pieces.size() + 2);
  script.front().emplace<wire::Progress>(wire::Progress{4, 4, 1});
  for (size_t i = 0; i < pieces.size(); ++i) {
    auto& tokens = script[i + 1].emplace<wire::Tokens>();
    tokens.ids = {1};
    tokens.bytes = pieces[i];
  }
  auto& end = script.back().emplace<wire::Finished>();
  end.reason = reason;
  end.usage = {4, static_cast<int32_t>(pieces.size()), 1};
  end.timings = {1, 2, 4};
  set_script(std::move(script));
}

void FakeEngine::set_status(const supervise::Status& status) {
  const std::lock_guard lock(mutex_);
  status_ = status;
}

wire::RequestId FakeEngine::submit(wire::Submit submit, Callbacks callbacks) {
  if (throws_) throw std::bad_alloc();
  wire::RequestId id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = ++last_;
    submits_.push_back(std::move(submit));
    if (script_.empty()) live_[id] = callbacks;
  }
  changed_.notify_all();
  for (const wire::Event& event : script_) callbacks.on_event(wire::Event(event));
  return id;
}

void FakeEngine::cancel(wire::RequestId request) {
  {
    const std::lock_guard lock(mutex_);
    cancelled_.push_back(request);
  }
  send(request, wire::Finished{wire::Reason::kCancelled, {}, {}});
  changed_.notify_all();
}

supervise::Status FakeEngine::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

wire::Submit FakeEngine::wait_for_submit(size_t n) {
  std::unique_lock lock(mutex_);
  const bool came =
      changed_.wait_for(lock, std::chrono::seconds(10), [&] { return submits_.size() >= n; });
  return came ? submits_[n - 1] : wire::Submit{};
}

bool FakeEngine::wait_for_cancel(wire::RequestId id) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(10),
                           [&] { return std::ranges::find(cancelled_, id) != cancelled_.end(); });
}

bool FakeEngine::send(wire::RequestId id, wire::Event event) {
  Callbacks callbacks;
  {
    const std::lock_guard lock(mutex_);
    const auto it = live_.find(id);
    if (it == live_.end()) return false;
    callbacks = it->second;
    const bool last = std::holds_alternative<wire::Finished>(event) ||
                      std::holds_alternative<wire::Failed>(event);
    if (last) live_.erase(it);
  }
  callbacks.on_event(std::move(event));
  return true;
}

bool FakeEngine::send_text(wire::RequestId id, const std::string& text) {
  wire::Event event;
  event.emplace<wire::Tokens>(wire::Tokens{{1}, text});
  return send(id, std::move(event));
}

bool FakeEngine::restart(wire::RequestId id) {
  const std::lock_guard lock(mutex_);
  const auto it = live_.find(id);
  if (it == live_.end() || !it->second.on_restart) return false;
  it->second.on_restart();
  return true;
}

}  // namespace strata::server::testing
