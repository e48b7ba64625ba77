#include "strata/device/sim/sim_order.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "strata/base/check.h"
#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/device/device.h"
#include "strata/device/sim/sim_stream.h"

namespace strata::device {

SimEvent::~SimEvent() { STRATA_CHECK(n_queued_ == 0); }

bool SimEvent::wait_until(Clock::TimePoint until, const Clock& clock) const {
  const SimFaults& faults = faults_of(device());
  order_.shuffle();
  const SimOrder::Running running(order_);
  // At least one entry a call: a caller that waits in slices of no length gets on, as on a card.
  while (!done()) {
    if (faults.lost()) {
      throw to_error({.code = ErrorCode::kDeviceLost, .call = "a wait", .device = device().id()});
    }
    if (!order_.run_one_or_stand(until, clock)) return false;
    if (!done() && clock.now() >= until) return false;
  }
  return true;
}

void SimOrder::remove(SimStream& stream) { std::erase(streams_, &stream); }

bool SimOrder::linked(DeviceId a, DeviceId b) const {
  const auto find = [this](DeviceId id) {
    return std::ranges::find_if(sims_, [id](const Device* sim) { return sim->id() == id; });
  };
  const auto from = find(a), to = find(b);
  return from != sims_.end() && to != sims_.end() && (*from)->reaches(**to);
}

void SimOrder::shuffle() {
  for (SimStream* stream : streams_) stream->preference = random_();
}

bool SimOrder::run_one() {
  SimStream* best = nullptr;
  for (SimStream* stream : streams_) {
    if (stream->runnable() && (best == nullptr || stream->preference > best->preference)) {
      best = stream;
    }
  }
  if (best == nullptr) return false;
  // Mostly stay, sometimes change: runs one stream far ahead of another, which is where missing
  // events show, and still mixes.
  constexpr uint64_t kChangeOneIn = 2;
  if (random_() % kChangeOneIn == 0) best->preference = random_();
  best->run_head();
  return true;
}

void SimOrder::freeze(std::chrono::nanoseconds time) {
  held_up_ = true;
  frozen_until_ = std::chrono::steady_clock::now() + time;
}

bool SimOrder::run_one_or_stand(Clock::TimePoint until, const Clock& clock) {
  constexpr std::chrono::microseconds kLook{500};
  for (;;) {
    const bool frozen = std::chrono::steady_clock::now() < frozen_until_;
    const bool was_held_up = held_up_;
    if (!frozen && run_one()) {
      if (was_held_up) {
        held_up_ = false;
        streams_.front()->device().waits().set_blocked_by("");
      }
      return true;
    }
    const bool stands = frozen || std::ranges::any_of(streams_, [](const SimStream* stream) {
                          return stream->hangs() && hangs_take_time(stream->device());
                        });
    if (!stands || clock.now() >= until) return false;
    std::this_thread::sleep_for(kLook);
  }
}

void SimOrder::skip_work_of(const Device& device) {
  for (SimStream* stream : streams_) {
    if (&stream->device() == &device) stream->skip_queued();
  }
}

std::byte* SimOrder::take_pages(Bytes bytes, int poison) {
  os::GuardedPages pages(bytes);
  std::byte* const data = pages.data();
  if (data == nullptr) return nullptr;
  std::memset(data, poison, static_cast<size_t>(bytes));
  if (n_running_ == 0) pages.set_open(false);
  pages_.emplace(data, std::move(pages));
  return data;
}

void SimOrder::set_open(bool open) {
  for (auto& [data, pages] : pages_) pages.set_open(open);
}

bool SimOrder::is_live(const MemView& view) const {
  auto after = live_.upper_bound(view.data);
  if (after == live_.begin()) return false;
  const auto& [begin, bytes] = *std::prev(after);
  const auto offset = static_cast<Bytes>(view.data - begin);
  return offset <= bytes && view.bytes <= bytes - offset;
}

void SimOrder::check_unused(const MemView& view) const {
  for (const SimStream* stream : streams_) {
    const char* op = stream->queued_use_of(view);
    if (op == nullptr) continue;
    log_error(format("{} bytes of device {} freed while {} on stream {} is queued", view.bytes,
                     stream->device().id().value, op, stream->name()));
    STRATA_CHECK(!"memory freed under queued work");
  }
}

}  // namespace strata::device
