#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "strata/base/thread_pool.h"
#include "strata/device/counters.h"
#include "strata/device/event.h"
#include "strata/device/fault.h"
#include "strata/device/graph.h"
#include "strata/device/lease.h"
#include "strata/device/memory.h"

namespace strata::device {

class Device;

// What a launch does, known before it runs: sim prices it, fault rules and the watchdog name it.
struct Cost {
  const char* op = "";  // literal
  Bytes read = 0, written = 0;
  uint64_t ops = 0;
};

// Work in order. Every launch and copy of the program passes here: counted, and recorded while
// capturing. Host runs work at once, sim and cards queue it. Made by Device::make_stream, which it
// must not outlive; destroying it waits for its work. One thread at a time.
class Stream {
 public:
  static constexpr size_t kMaxBody = 512;
  static constexpr size_t kMaxBodyAlign = 16;

  // How a body is kept: its bytes and a function that knows its type.
  using Call = void (*)(const void* body, ThreadPool& pool);

  virtual ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Queues body() or body(ThreadPool&). The bytes of the body are copied and may be run several
  // times (replay); what they point at must live until the work is done. A body never allocates
  // and never waits; one that throws hands its exception to whoever runs it: on host this call, on
  // sim a wait (see device::wait for what then becomes of the queue).
  // Errors: kDevice, kDeviceLost if a card refuses the launch.
  template <class Body>
  void run(const Cost& cost, const Body& body) {
    static_assert(std::is_trivially_copyable_v<Body>, "kept as bytes in a ring");
    static_assert(sizeof(Body) <= kMaxBody && alignof(Body) <= kMaxBodyAlign);
    constexpr bool kTakesPool = std::is_invocable_v<const Body&, ThreadPool&>;
    static_assert(kTakesPool || std::is_invocable_v<const Body&>);
    launch(
        cost,
        [](const void* bytes, ThreadPool& pool) {
          if constexpr (kTakesPool) {
            (*static_cast<const Body*>(bytes))(pool);
          } else {
            static_cast<void>(pool);
            (*static_cast<const Body*>(bytes))();
          }
        },
        &body, sizeof(Body));
  }

  // Queues a copy of equally many bytes that do not overlap.
  // Faults: kUnsupported if a card would touch pageable memory. Where pinning has been tripped
  // (Device::allocate_staging) that goes through a ring: the bytes are taken from pageable memory
  // before this returns, or have come there; then also the errors of device::wait.
  Try<Done> copy(const MemView& to, const MemView& from);

  void record(Event& event);      // of this device; done when the work queued so far is
  void wait(const Event& event);  // of any device; later work of this stream runs after it

  // Between the two, run and copy are recorded and do not happen. Events, leases and replays do not
  // fit into a graph: one of them makes end_capture fail.
  // Faults: kDevice from begin_capture if one is going on, from end_capture if none is or the
  //   capture was spoiled; kResourceExhausted if the line has no room for the graph.
  Try<Done> begin_capture();
  Try<Graph> end_capture(PlanLineId line);
  bool capturing() const { return capturing_; }
  // Queues the graph's work: the bits of the eager run.
  void replay(const Graph& graph);

  // Keeps the lease until the work queued so far is done; it then ends on a thread that calls this
  // stream or waits for it.
  void release_after(Lease&& lease);

  // Waits on the host for all work queued so far, as device::wait does: so long from now on, by the
  // clock of the device's waits, or until a deadline. For loading, tests and shutdown: the first
  // call allocates.
  bool drain(const WaitFor& what, std::chrono::nanoseconds limit);
  bool drain(const WaitFor& what, Deadline deadline);

  // What the work queued from now on belongs to, for reports: "layer", 3. A literal.
  struct Place {
    const char* what = "";
    int number = 0;
  };
  void set_place(const Place& place) { place_ = place; }
  const Place& place() const { return place_; }

  Device& device() const { return device_; }
  ThreadPool& pool() const;
  const std::string& name() const { return name_; }
  const StreamCounters& counters() const { return counters_; }

 protected:
  Stream(Device& device, std::string name);

  // Order after an event that this device cannot wait for itself. Errors: kDevice if it is late.
  void wait_on_host(const Event& event);

 private:
  void launch(const Cost& cost, Call call, const void* body, size_t bytes);
  Try<Done> copy_through_ring(const MemView& to, const MemView& from);

  // do_launch and do_copy look at capturing() and record instead.
  virtual void do_launch(const Cost& cost, Call call, const void* body, size_t bytes) = 0;
  virtual Try<Done> do_copy(const MemView& to, const MemView& from) = 0;
  virtual void do_record(Event& event) = 0;
  virtual void do_wait(const Event& event) = 0;
  virtual Try<Done> do_begin_capture() = 0;
  virtual Try<Graph> do_end_capture(PlanLineId line, bool spoiled) = 0;
  virtual void do_replay(const Graph& graph) = 0;
  virtual void do_release_after(Lease&& lease) = 0;

  Device& device_;
  std::string name_;
  StreamCounters counters_;
  Place place_;
  bool capturing_ = false;
  bool spoiled_ = false;        // the capture met something that does not fit
  std::unique_ptr<Event> end_;  // of drain(); here, so that a late one outlives the call
};

}  // namespace strata::device
