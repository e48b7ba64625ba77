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
      ring_(std::make_unique<Entry[]>(kRing)),
      bodies_(std::make_unique_for_overwrite<Body[]>(kRing)) {
  order_.add(*this);
}

SimStream::~SimStream() {
  // A wait names a record that was queued before it, so something can always run.
  while (n_queued_ > 0) {
    try {
      STRATA_CHECK(order_.run_one());
    } catch (const std::exception& e) {
      log_error(format("stream {}: while it was closed: {}", name(), e.what()));
    } catch (...) {
      log_error(format("stream {}: while it was closed: something unknown was thrown", name()));
    }
  }
  order_.remove(*this);
}

bool SimStream::runnable() const {
  if (n_queued_ == 0) return false;
  const Entry& entry = at(0);
  return entry.what != What::kWait || entry.event->reached_ >= entry.generation;
}

void SimStream::run_head() {
  Entry& entry = ring_[head_];
  if (entry.what == What::kReplay) return run_node(entry);
  // Also after a throw: an entry runs once.
  struct Pop {
    SimStream& stream;
    ~Pop() { stream.pop(); }
  } pop{*this};
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
      if (entry.node != nullptr) return;
      --entry.graph->n_queued;
      stream.pop();
    }
  } finish{*this, entry};
  if (node != nullptr) node->run(pool());
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
  while (n_queued_ == kRing) STRATA_CHECK(order_.run_one());
  Entry& entry = ring_[(head_ + n_queued_) % kRing];
  ++n_queued_;
  entry.what = what;
  return entry;
}

void SimStream::pop() {
  head_ = (head_ + 1) % kRing;
  --n_queued_;
}

void SimStream::do_launch(const Cost& cost, Call call, const void* from, size_t bytes) {
  if (capturing()) return recording_.add_launch(cost, call, from, bytes);
  Entry& entry = push(What::kLaunch);
  entry.cost = cost;
  entry.call = call;
  entry.body_bytes = bytes;
  std::memcpy(body(entry), from, bytes);
}

Try<Done> SimStream::do_copy(const MemView& to, const MemView& from) {
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
  auto& work = static_cast<RecordedWork&>(*graph.work());
  STRATA_CHECK(&work.device() == &device());
  Entry& entry = push(What::kReplay);
  entry.graph = &work;
  entry.node = work.first();
  ++work.n_queued;
}

void SimStream::do_release_after(Lease&& lease) { push(What::kRelease).lease = std::move(lease); }

}  // namespace strata::device
