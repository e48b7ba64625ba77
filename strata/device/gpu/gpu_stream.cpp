#include "strata/device/gpu/gpu_stream.h"

#include <chrono>
#include <thread>

#include "strata/base/check.h"
#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/device/device.h"

namespace strata::device::gpu {
namespace {

// A step of a small model is done within this; who waits longer sleeps between looks.
constexpr std::chrono::microseconds kSpin{200};
constexpr std::chrono::microseconds kNap{20};

bool is_done(NativeEvent event, DeviceId device) {
  const Status status = STRATA_GPU(EventQuery)(event);
  if (status == STRATA_GPU(ErrorNotReady)) {
    static_cast<void>(STRATA_GPU(GetLastError)());
    return false;
  }
  require(STRATA_GPU_TEXT "EventQuery", status, device);
  return true;
}

NativeEvent make_native_event(DeviceId device) {
  NativeEvent event = nullptr;
  STRATA_GPU_CALL(device, EventCreateWithFlags, &event, STRATA_GPU(EventDisableTiming));
  return event;
}

class GpuGraph final : public Graph::Work {
 public:
  GpuGraph(Device& device, Allocation memory, STRATA_GPU(GraphExec_t) exec)
      : device_(device), memory_(std::move(memory)), exec_(exec) {}
  ~GpuGraph() override { static_cast<void>(STRATA_GPU(GraphExecDestroy)(exec_)); }

  Device& device() const { return device_; }
  STRATA_GPU(GraphExec_t) exec() const { return exec_; }

 private:
  Device& device_;
  Allocation memory_;
  STRATA_GPU(GraphExec_t) exec_;
};

}  // namespace

LeaseQueue::~LeaseQueue() {
  static_cast<void>(STRATA_GPU(SetDevice)(ordinal_));
  // The stream was waited for before this goes, so what is left is done.
  for (auto& [event, lease] : waiting_) static_cast<void>(STRATA_GPU(EventDestroy)(event));
  for (NativeEvent event : spare_) static_cast<void>(STRATA_GPU(EventDestroy)(event));
}

void LeaseQueue::add(Lease&& lease, NativeStream stream) {
  const std::lock_guard lock(mutex_);
  if (spare_.empty()) spare_.push_back(make_native_event(id_));
  STRATA_GPU_CALL(id_, EventRecord, spare_.back(), stream);
  waiting_.emplace_back(spare_.back(), std::move(lease));
  spare_.pop_back();
}

void LeaseQueue::reap() {
  const std::lock_guard lock(mutex_);
  while (!waiting_.empty() && is_done(waiting_.front().first, id_)) {
    spare_.push_back(waiting_.front().first);
    waiting_.pop_front();
  }
}

GpuEvent::GpuEvent(Device& device, int ordinal) : Event(device), ordinal_(ordinal) {
  STRATA_GPU_CALL(device.id(), SetDevice, ordinal);
  event_ = make_native_event(device.id());
}

GpuEvent::~GpuEvent() { static_cast<void>(STRATA_GPU(EventDestroy)(event_)); }

bool GpuEvent::done() const {
  if (!is_done(event_, device().id())) return false;
  if (leases_) leases_->reap();
  return true;
}

bool GpuEvent::wait_until(Clock::TimePoint until, const Clock& clock) const {
  const auto spin_until = clock.now() + kSpin;
  for (;;) {
    if (done()) return true;
    const auto now = clock.now();
    if (now >= until) return false;
    if (now >= spin_until) std::this_thread::sleep_for(kNap);
  }
}

GpuStream::GpuStream(Device& device, int ordinal, std::string name)
    : Stream(device, std::move(name)),
      ordinal_(ordinal),
      leases_(std::make_shared<LeaseQueue>(device.id(), ordinal)) {
  use();
  STRATA_GPU_CALL(device.id(), StreamCreateWithFlags, &stream_, STRATA_GPU(StreamNonBlocking));
}

GpuStream::~GpuStream() {
  try {
    use();
    STRATA_GPU_CALL(device().id(), StreamSynchronize, stream_);
    leases_->reap();
  } catch (const Error& e) {
    log_warning(format("stream {}: {}", name(), e.what()));
  }
  static_cast<void>(STRATA_GPU(StreamDestroy)(stream_));
}

void GpuStream::use() const { STRATA_GPU_CALL(device().id(), SetDevice, ordinal_); }

void GpuStream::do_launch(const Cost& cost, Call call, const void* body, size_t) {
  use();
  call(body, pool());
  const Status status = STRATA_GPU(GetLastError)();
  if (status == STRATA_GPU(Success)) return;
  try {
    fail(STRATA_GPU_TEXT "LaunchKernel", status, device().id());
  } catch (Error& e) {
    e.with(format("queueing {}", cost.op));
    throw;
  }
}

Try<Done> GpuStream::do_copy(const MemView& to, const MemView& from) {
  if (to.bytes == 0) return Done{};
  use();
  const Status status =
      STRATA_GPU(MemcpyAsync)(to.data, from.data, to.bytes, STRATA_GPU(MemcpyDefault), stream_);
  if (status == STRATA_GPU(Success)) return Done{};
  Fault fault = fault_of(STRATA_GPU_TEXT "MemcpyAsync", status, device().id());
  fault.asked = to.bytes;
  return fault;
}

void GpuStream::do_record(Event& event) {
  use();
  auto& own = static_cast<GpuEvent&>(event);
  STRATA_GPU_CALL(device().id(), EventRecord, own.native(), stream_);
  own.recorded_on(leases_);
  leases_->reap();
}

void GpuStream::do_wait(const Event& event) {
  if (event.device().kind() != Kind::kGpu) {
    // The host's are done as they are recorded; a sim's are worked off by who waits.
    if (!event.done()) wait_on_host(event);
    return;
  }
  use();
  STRATA_GPU_CALL(device().id(), StreamWaitEvent, stream_,
                  static_cast<const GpuEvent&>(event).native(), 0);
}

Try<Done> GpuStream::do_begin_capture() {
  use();
  // Relaxed: other threads of the process may allocate and load meanwhile.
  const Status status =
      STRATA_GPU(StreamBeginCapture)(stream_, STRATA_GPU(StreamCaptureModeRelaxed));
  if (status == STRATA_GPU(Success)) return Done{};
  return fault_of(STRATA_GPU_TEXT "StreamBeginCapture", status, device().id());
}

Try<Graph> GpuStream::do_end_capture(PlanLineId line, bool spoiled) {
  use();
  STRATA_GPU(Graph_t) graph = nullptr;
  Status status = STRATA_GPU(StreamEndCapture)(stream_, &graph);
  if (status != STRATA_GPU(Success)) {
    return fault_of(STRATA_GPU_TEXT "StreamEndCapture", status, device().id());
  }
  const auto give_up = [&](const Fault& fault) -> Try<Graph> {
    static_cast<void>(STRATA_GPU(GraphDestroy)(graph));
    return fault;
  };
  if (spoiled)
    return give_up({.call = "end_capture of a spoiled capture", .device = device().id()});
  size_t n_nodes = 0;
  status = STRATA_GPU(GraphGetNodes)(graph, nullptr, &n_nodes);
  if (status != STRATA_GPU(Success)) {
    return give_up(fault_of(STRATA_GPU_TEXT "GraphGetNodes", status, device().id()));
  }
  Try<Allocation> memory = device().allocate(line, device().graph_bytes(n_nodes), Mem::kDevice);
  if (const Fault* f = fault(memory)) return give_up(*f);
  STRATA_GPU(GraphExec_t) exec = nullptr;
  status = STRATA_GPU(GraphInstantiateWithFlags)(&exec, graph, 0);
  if (status != STRATA_GPU(Success)) {
    return give_up(fault_of(STRATA_GPU_TEXT "GraphInstantiate", status, device().id()));
  }
  static_cast<void>(STRATA_GPU(GraphDestroy)(graph));
  return Graph(std::make_unique<GpuGraph>(device(), std::move(std::get<Allocation>(memory)), exec));
}

void GpuStream::do_replay(const Graph& graph) {
  use();
  const auto& work = static_cast<const GpuGraph&>(*graph.work());
  STRATA_CHECK(&work.device() == &device());
  STRATA_GPU_CALL(device().id(), GraphLaunch, work.exec(), stream_);
}

void GpuStream::do_release_after(Lease&& lease) {
  use();
  leases_->add(std::move(lease), stream_);
  leases_->reap();
}

}  // namespace strata::device::gpu
