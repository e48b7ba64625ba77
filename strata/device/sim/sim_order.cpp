#include "strata/device/sim/sim_order.h"

#include <algorithm>
#include <cstring>
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
    if (!order_.run_one()) return false;
    if (!done() && clock.now() >= until) return false;
  }
  return true;
}

void SimOrder::remove(SimStream& stream) { std::erase(streams_, &stream); }

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
