#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "strata/device/gpu/api.h"
#include "strata/device/stream.h"

namespace strata::device::gpu {

// Leases and the events behind which they end. Shared by a stream and the events recorded on it,
// so that a wait ends leases too; any thread may call.
class LeaseQueue {
 public:
  LeaseQueue(DeviceId id, int ordinal) : id_(id), ordinal_(ordinal) {}
  ~LeaseQueue();
  void add(Lease&& lease, NativeStream stream);
  // Ends those whose work is done.
  void reap();

 private:
  DeviceId id_;
  int ordinal_;
  std::mutex mutex_;
  std::deque<std::pair<NativeEvent, Lease>> waiting_;
  std::vector<NativeEvent> spare_;
};

class GpuEvent final : public Event {
 public:
  GpuEvent(Device& device, int ordinal);
  ~GpuEvent() override;
  bool done() const override;

  NativeEvent native() const { return event_; }
  void recorded_on(std::shared_ptr<LeaseQueue> leases) { leases_ = std::move(leases); }

 private:
  bool wait_until(Clock::TimePoint until, const Clock& clock) const override;

  int ordinal_;
  NativeEvent event_ = nullptr;
  std::shared_ptr<LeaseQueue> leases_;  // shared with the stream, which may go first
};

class GpuStream final : public Stream {
 public:
  GpuStream(Device& device, int ordinal, std::string name);
  ~GpuStream() override;

  NativeStream native() const { return stream_; }

 private:
  void do_launch(const Cost& cost, Call call, const void* body, size_t bytes) override;
  Try<Done> do_copy(const MemView& to, const MemView& from) override;
  void do_record(Event& event) override;
  void do_wait(const Event& event) override;
  Try<Done> do_begin_capture() override;
  Try<Graph> do_end_capture(PlanLineId line, bool spoiled) override;
  void do_replay(const Graph& graph) override;
  void do_release_after(Lease&& lease) override;
  void use() const;

  int ordinal_;
  NativeStream stream_ = nullptr;
  std::shared_ptr<LeaseQueue> leases_;
};

// The runtime's stream of a stream of a card.
inline NativeStream native(const Stream& stream) {
  return static_cast<const GpuStream&>(stream).native();
}

}  // namespace strata::device::gpu
