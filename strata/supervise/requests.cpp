#include "strata/supervise/requests.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "strata/base/error.h"
#include "strata/base/format.h"

namespace strata::supervise {
namespace {

// A request that was running in two dying engines is likely to be what kills them.
constexpr int kMaxRuns = 2;

bool is_terminal(const wire::Event& event) {
  return std::holds_alternative<wire::Finished>(event) ||
         std::holds_alternative<wire::Failed>(event);
}

}  // namespace

void Requests::Call::operator()() {
  const EngineClient::Callbacks& callbacks = running ? *running : ended;
  if (!event)
    callbacks.on_restart();
  else
    callbacks.on_event(std::move(*event));
}

void Requests::add(wire::RequestId id, wire::Submit submit, EngineClient::Callbacks callbacks,
                   TimePoint now) {
  Entry entry;
  entry.submit = std::move(submit);
  entry.callbacks = std::move(callbacks);
  entry.waiting_since = now;
  entries_.emplace(id, std::move(entry));
}

void Requests::send_waiting(const std::function<void(wire::RequestId, const wire::Submit&)>& send) {
  for (auto& [id, entry] : entries_) {
    if (entry.sent || entry.cancelled || entry.refusal) continue;
    try {
      send(id, entry.submit);
    } catch (const Error& e) {
      entry.refusal = wire::Failed{.code = e.code(), .message = e.what()};
      continue;
    }
    entry.sent = true;
    entry.n_idle_pulses = 0;
    entry.begun = false;
  }
}

bool Requests::cancel(wire::RequestId id) {
  const auto it = entries_.find(id);
  if (it == entries_.end()) return false;
  it->second.cancelled = true;
  return it->second.sent;
}

std::vector<Requests::Call> Requests::take_unsent() {
  std::vector<Call> calls;
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto here = it++;
    const Entry& entry = here->second;
    if (entry.refusal)
      calls.push_back(end(here, wire::Event(*entry.refusal)));
    else if (entry.cancelled && !entry.sent)
      calls.push_back(end(here, wire::Finished{wire::Reason::kCancelled, {}, {}}));
  }
  return calls;
}

std::vector<Requests::Call> Requests::take_waiting_since_before(TimePoint limit,
                                                                const wire::Failed& failed) {
  std::vector<Call> calls;
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto here = it++;
    if (!here->second.sent && here->second.waiting_since < limit)
      calls.push_back(end(here, failed));
  }
  return calls;
}

std::optional<Requests::Call> Requests::on_event(wire::RequestId id, wire::Event&& event) {
  const auto it = entries_.find(id);
  if (it == entries_.end() || !it->second.sent) return std::nullopt;
  Entry& entry = it->second;
  entry.n_idle_pulses = 0;
  entry.begun = true;
  if (is_terminal(event)) return end(it, std::move(event));
  if (const auto* tokens = std::get_if<wire::Tokens>(&event);
      tokens && !entry.callbacks.on_restart) {
    // The next engine goes on behind them, should this one die.
    entry.submit.sent.insert(entry.submit.sent.end(), tokens->ids.begin(), tokens->ids.end());
  }
  Call call;
  call.running = &entry.callbacks;
  call.event = std::move(event);
  return call;
}

std::vector<Requests::Call> Requests::on_idle_pulse(int limit) {
  std::vector<Call> calls;
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto here = it++;
    if (!here->second.sent || ++here->second.n_idle_pulses <= limit) continue;
    calls.push_back(
        end(here, wire::Failed{ErrorCode::kInternal, "the engine has lost the request"}));
  }
  return calls;
}

std::vector<Requests::Call> Requests::on_death(const std::string& reason, TimePoint now) {
  std::vector<Call> calls;
  const bool any_begun = std::ranges::any_of(
      entries_, [](const auto& each) { return each.second.sent && each.second.begun; });
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto here = it++;
    Entry& entry = here->second;
    if (!entry.sent) continue;
    if (entry.begun || !any_begun) ++entry.n_runs;
    entry.sent = false;
    entry.waiting_since = now;
    if (entry.cancelled) continue;  // take_unsent() ends it
    if (entry.n_runs >= kMaxRuns) {
      calls.push_back(
          end(here, wire::Failed{ErrorCode::kInternal,
                                 format("the engine stopped ({}) twice on this request", reason)}));
    } else if (entry.callbacks.on_restart) {
      Call call;
      call.running = &entry.callbacks;
      calls.push_back(std::move(call));
    }
  }
  return calls;
}

bool Requests::any_sent() const {
  return std::ranges::any_of(entries_, [](const auto& each) { return each.second.sent; });
}

std::vector<Requests::Call> Requests::end_all(const wire::Failed& failed) {
  std::vector<Call> calls;
  while (!entries_.empty()) calls.push_back(end(entries_.begin(), failed));
  return calls;
}

Requests::Call Requests::end(Map::iterator it, wire::Event event) {
  Call call;
  call.ended = std::move(it->second.callbacks);
  call.event = std::move(event);
  entries_.erase(it);
  return call;
}

}  // namespace strata::supervise
