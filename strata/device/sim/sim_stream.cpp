#include "strata/device/sim/sim_stream.h"

#include <cstring>
#include <exception>

#include "strata/base/check.h"
#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/device/device.h"

namespace strata::device {
namespace {

bool overlap(const MemView& a, const MemView& b) {
  return a.bytes > 0 && b.bytes > 0 && a.data < b.data + b.bytes && b.data < a.data + a.bytes;
}

// Whether some word of the body is an address within the view.
bool names(const void* body, size_t body_bytes, const MemView& view) {
  const auto begin = reinterpret_cast<uintptr_t>(view.data);
  for (size_t at = 0; at + sizeof(uintptr_t) <= body_bytes; at += alignof(uintptr_t)) {
    uintptr_t word = 0;
    std::memcpy(&word, static_cast<const std::byte*>(body) + at, sizeof(word));
    if (word >= begin && word - begin < view.bytes) return true;
  }
  return false;
}

}  // namespace

SimStream::SimStream(Device& device, std::string name, SimOrder& order)
    : Stream(device, std::move(name)),
      order_(order),
      faults_(faults_of(device)),
      ring_(std::make_unique<Entry[]>(kRing)),
      bodies_(std::make_unique_for_overwrite<Body[]>(kRing)) {
  order_.add(*this);
}

SimStream::~SimStream() {
  const SimOrder::Running running(order_);
  // A wait names a record that was queued before it, so something can always run that does not
  // hang; and nothing hangs for ever here, as the memory that it names goes next.
  while (n_queued_ > 0) {
    try {
      if (order_.run_one()) continue;
      STRATA_CHECK(faults_.hangs());
      faults_.resume();
    } catch (const std::exception& e) {
      log_error(format("stream {}: while it was closed: {}", name(), e.what()));
    } catch (...) {
      log_error(format("stream {}: while it was closed: something unknown was thrown", name()));
    }
  }
  order_.remove(*this);
}

std::optional<Fault> SimStream::pass(FaultPoint point) {
  const std::optional<Fault> fault = faults_.pass(point);
  if (fault && faults_.lost()) order_.skip_work_of(device());
  return fault;
}

void SimStream::throw_if_lost() {
  if (!faults_.lost()) return;
  throw to_error({.code = ErrorCode::kDeviceLost, .call = "a call", .device = device().id()});
}

bool SimStream::runnable() const {
  if (n_queued_ == 0 || faults_.hangs()) return false;
  const Entry& entry = at(0);
  return entry.what != What::kWait || entry.event->reached_ >= entry.generation;
}

void SimStream::run_head() {
  Entry& entry = ring_[head_];
  const bool works =
      entry.what == What::kLaunch || entry.what == What::kCopy || entry.what == What::kReplay;
  if (works) {
    const std::optional<Fault> fault = pass(FaultPoint::kHang);
    if (fault && faults_.hangs()) return;
  }
  try {
    if (entry.what == What::kReplay) return run_node(entry);
    // Also after a throw: an entry runs once.
    struct Pop {
      SimStream& stream;
      ~Pop() { stream.pop(); }
    } pop{*this};
    run_entry(entry);
  } catch (...) {
    // What comes next would compute with what was never written.
    skip_from(0);
    throw;
  }
}

void SimStream::run_entry(Entry& entry) {
  if (entry.what == What::kLaunch || entry.what == What::kCopy) {
    if (const std::optional<Fault> fault = pass(FaultPoint::kRun)) throw to_error(*fault);
  }
  switch (entry.what) {
    case What::kLaunch:
      entry.call(body(entry), pool());
      break;
    case What::kCopy:
      copy_bytes(entry.to, entry.from, pool());
      break;
    case What::kRecord:
      entry.event->reached_ = entry.generation;
      --entry.event->n_queued_;
      break;
    case What::kWait:
      --entry.event->n_queued_;
      break;
    case What::kRelease:
      entry.lease.release();
      break;
    case What::kReplay:
    case What::kSkipped:
      break;
  }
}

// One node of a graph: other streams may come between two of them.
void SimStream::run_node(Entry& entry) {
  const RecordedNode* node = entry.node;
  if (node != nullptr) entry.node = entry.graph->next(node);
  struct Finish {
    SimStream& stream;
    Entry& entry;
    ~Finish() {
      if (entry.what == What::kReplay) {
        if (entry.node != nullptr) return;
        --entry.graph->n_queued;
      }
      stream.pop();
    }
  } finish{*this, entry};
  if (node == nullptr) return;
  if (const std::optional<Fault> fault = pass(FaultPoint::kRun)) throw to_error(*fault);
  node->run(pool());
}

void SimStream::skip_from(size_t i) {
  for (; i < n_queued_; ++i) {
    Entry& entry = ring_[(head_ + i) % kRing];
    if (entry.what == What::kReplay) --entry.graph->n_queued;
    if (entry.what == What::kLaunch || entry.what == What::kCopy || entry.what == What::kReplay) {
      entry.what = What::kSkipped;
    }
  }
}

const char* SimStream::queued_use_of(const MemView& view) const {
  for (size_t i = 0; i < n_queued_; ++i) {
    const Entry& entry = at(i);
    if (entry.what == What::kLaunch && names(body(entry), entry.body_bytes, view)) {
      return entry.cost.op;
    }
    if (entry.what == What::kCopy && (overlap(entry.to, view) || overlap(entry.from, view))) {
      return "copy";
    }
    if (entry.what != What::kReplay) continue;
    for (const RecordedNode* node = entry.node; node != nullptr; node = entry.graph->next(node)) {
      if (overlap(node->to, view) || overlap(node->from, view)) return "copy of a graph";
      if (names(node->body(), node->body_bytes, view)) return node->cost.op;
    }
  }
  return nullptr;
}

SimStream::Entry& SimStream::push(What what) {
  if (n_queued_ == kRing) make_room();
  Entry& entry = ring_[(head_ + n_queued_) % kRing];
  ++n_queued_;
  entry.what = what;
  return entry;
}

void SimStream::make_room() {
  const SimOrder::Running running(order_);
  while (n_queued_ == kRing) {
    if (!order_.run_one()) {
      throw Error(ErrorCode::kDevice, format("stream {}: its queue is full and hangs", name()));
    }
  }
}

void SimStream::pop() {
  head_ = (head_ + 1) % kRing;
  --n_queued_;
}

void SimStream::do_launch(const Cost& cost, Call call, const void* from, size_t bytes) {
  if (const std::optional<Fault> fault = pass(FaultPoint::kLaunch)) throw to_error(*fault);
  if (capturing()) return recording_.add_launch(cost, call, from, bytes);
  Entry& entry = push(What::kLaunch);
  entry.cost = cost;
  entry.call = call;
  entry.body_bytes = bytes;
  std::memcpy(body(entry), from, bytes);
}

Try<Done> SimStream::do_copy(const MemView& to, const MemView& from) {
  if (const std::optional<Fault> fault = pass(FaultPoint::kCopy)) return *fault;
  // A card only knows memory of its own or registered with it.
  if (!order_.is_live(to) || !order_.is_live(from)) {
    return Fault{.code = ErrorCode::kUnsupported,
                 .call = "copy of memory that no card knows",
                 .device = device().id()};
  }
  if (capturing()) {
    recording_.add_copy(to, from);
    return Done{};
  }
  Entry& entry = push(What::kCopy);
  entry.to = to;
  entry.from = from;
  return Done{};
}

void SimStream::do_record(Event& event) {
  throw_if_lost();
  auto& sim = static_cast<SimEvent&>(event);
  // The records of two streams are reached in any order, so "the last one" would mean nothing.
  STRATA_CHECK(sim.done() || sim.stream_ == this);
  sim.stream_ = this;
  Entry& entry = push(What::kRecord);
  entry.event = &sim;
  entry.generation = ++sim.recorded_;
  ++sim.n_queued_;
}

void SimStream::do_wait(const Event& event) {
  throw_if_lost();
  if (event.done()) return;
  if (event.device().kind() != Kind::kSim) return wait_on_host(event);
  // The counts of an event are this module's business, not the caller's, who sees it as const.
  auto& sim = const_cast<SimEvent&>(static_cast<const SimEvent&>(event));
  if (&sim.order_ != &order_) return wait_on_host(event);
  const uint64_t generation = sim.recorded_;
  Entry& entry = push(What::kWait);
  entry.event = &sim;
  entry.generation = generation;
  ++sim.n_queued_;
}

Try<Done> SimStream::do_begin_capture() {
  recording_.clear();
  return Done{};
}

Try<Graph> SimStream::do_end_capture(PlanLineId line, bool spoiled) {
  if (spoiled) return Fault{.call = "end_capture of a spoiled capture", .device = device().id()};
  return recording_.finish(device(), line);
}

void SimStream::do_replay(const Graph& graph) {
  throw_if_lost();
  auto& work = static_cast<RecordedWork&>(*graph.work());
  STRATA_CHECK(&work.device() == &device());
  Entry& entry = push(What::kReplay);
  entry.graph = &work;
  entry.node = work.first();
  ++work.n_queued;
}

void SimStream::do_release_after(Lease&& lease) { push(What::kRelease).lease = std::move(lease); }

}  // namespace strata::device
