#include "strata/device/stream.h"

#include <algorithm>
#include <chrono>

#include "strata/base/check.h"
#include "strata/base/format.h"
#include "strata/device/device.h"
#include "strata/device/recording.h"

namespace strata::device {

Stream::Stream(Device& device, std::string name) : device_(device), name_(std::move(name)) {}
Stream::~Stream() = default;

ThreadPool& Stream::pool() const { return device_.pool(); }

void Stream::wait_on_host(const Event& event) {
  // Work that has not come after this long will not come.
  constexpr std::chrono::seconds kLimit{60};
  const WaitRegistry& waits = event.device().waits();
  const Clock::TimePoint begun = waits.clock().now();
  const auto deadline = Deadline::within(kLimit, waits.clock());
  if (device::wait(event, {.who = "stream order", .what = "work of another device"}, deadline)) {
    return;
  }
  throw Error(ErrorCode::kDevice, format("stream {}: an event of device {} did not come {}", name_,
                                         event.device().id().value, waits.late_text(begun)));
}

void Stream::launch(const Cost& cost, Call call, const void* body, size_t bytes) {
  counters_.launches.add(1);
  counters_.read_bytes.add(cost.read);
  counters_.written_bytes.add(cost.written);
  counters_.ops.add(cost.ops);
  do_launch(cost, call, body, bytes);
}

Try<Done> Stream::copy(const MemView& to, const MemView& from) {
  STRATA_CHECK(to.bytes == from.bytes);
  const bool pageable =
      device_.kind() != Kind::kHost && (to.mem == Mem::kPageable || from.mem == Mem::kPageable);
  if (pageable && (capturing_ || device_.trips().on(Feature::kPinning, device_.id()))) {
    return Fault{
        .code = ErrorCode::kUnsupported, .call = "copy of pageable memory", .device = device_.id()};
  }
  Try<Done> result = pageable ? copy_through_ring(to, from) : do_copy(to, from);
  if (fault(result) == nullptr) {
    counters_.copies.add(1);
    counters_.copied_bytes.add(to.bytes);
  }
  return result;
}

Try<Done> Stream::copy_through_ring(const MemView& to, const MemView& from) {
  Try<StagingRing*> got = device_.ring();
  if (const Fault* f = fault(got)) return *f;
  StagingRing& ring = *std::get<StagingRing*>(got);
  const bool out = to.mem == Mem::kPageable;
  for (Bytes at = 0; at < to.bytes; at += ring.piece_bytes()) {
    const Bytes n = std::min(ring.piece_bytes(), to.bytes - at);
    const auto late = [&](const char* what) -> Try<Done> {
      return Fault{.code = ErrorCode::kDevice, .call = what, .device = device_.id(), .asked = n};
    };
    StagingRing::Piece& piece = ring.next();
    if (!ring.wait(piece)) return late("the copy before on the way through the staging ring");
    const MemView between = piece.memory.part(0, n);
    if (!out) copy_bytes(between, from.part(at, n), pool());
    Try<Done> result = do_copy(out ? between : to.part(at, n), out ? from.part(at, n) : between);
    if (fault(result) != nullptr) return result;
    do_record(*piece.done);
    if (!out) continue;
    if (!ring.wait(piece)) return late("a copy on the way through the staging ring");
    copy_bytes(to.part(at, n), between, pool());
  }
  return Done{};
}

void Stream::record(Event& event) {
  STRATA_CHECK(&event.device() == &device_);
  counters_.records.add(1);
  if (capturing_) {
    spoiled_ = true;
    return;
  }
  do_record(event);
}

void Stream::wait(const Event& event) {
  counters_.waits.add(1);
  if (capturing_) {
    spoiled_ = true;
    return;
  }
  do_wait(event);
}

Try<Done> Stream::begin_capture() {
  if (capturing_) return Fault{.call = "begin_capture", .device = device_.id()};
  Try<Done> result = do_begin_capture();
  if (fault(result) == nullptr) {
    counters_.captures.add(1);
    capturing_ = true;
    spoiled_ = false;
  }
  return result;
}

Try<Graph> Stream::end_capture(PlanLineId line) {
  if (!capturing_) return Fault{.call = "end_capture", .device = device_.id()};
  capturing_ = false;
  return do_end_capture(line, spoiled_);
}

void Stream::replay(const Graph& graph) {
  STRATA_CHECK(graph);
  counters_.replays.add(1);
  if (capturing_) {
    spoiled_ = true;
    return;
  }
  do_replay(graph);
}

void Stream::release_after(Lease&& lease) {
  // Ends with the work that was queued before the capture: a graph may run at any time.
  if (capturing_) spoiled_ = true;
  do_release_after(std::move(lease));
}

bool Stream::drain(const WaitFor& what, std::chrono::nanoseconds limit) {
  return drain(what, Deadline::within(limit, device_.waits().clock()));
}

bool Stream::drain(const WaitFor& what, Deadline deadline) {
  if (end_ == nullptr) end_ = device_.make_event();
  record(*end_);
  return device::wait(*end_, what, deadline);
}

}  // namespace strata::device
