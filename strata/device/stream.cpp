#include "strata/device/stream.h"

#include <chrono>

#include "strata/base/check.h"
#include "strata/base/format.h"
#include "strata/device/device.h"

namespace strata::device {

Stream::Stream(Device& device, std::string name) : device_(device), name_(std::move(name)) {}
Stream::~Stream() = default;

ThreadPool& Stream::pool() const { return device_.pool(); }

void Stream::wait_on_host(const Event& event) {
  // Work that has not come after this long will not come.
  constexpr std::chrono::seconds kLimit{60};
  const auto deadline = Deadline::within(kLimit, event.device().waits().clock());
  if (device::wait(event, {.who = "stream order", .what = "work of another device"}, deadline)) {
    return;
  }
  throw Error(ErrorCode::kDevice, format("stream {}: an event of device {} did not come in {} s",
                                         name_, event.device().id().value, kLimit.count()));
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
  if (device_.kind() != Kind::kHost && (to.mem == Mem::kPageable || from.mem == Mem::kPageable)) {
    return Fault{
        .code = ErrorCode::kUnsupported, .call = "copy of pageable memory", .device = device_.id()};
  }
  Try<Done> result = do_copy(to, from);
  if (fault(result) == nullptr) {
    counters_.copies.add(1);
    counters_.copied_bytes.add(to.bytes);
  }
  return result;
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
