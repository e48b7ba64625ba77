#include "strata/device/sim/sim_stream.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include "strata/base/check.h"
#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/device/device.h"
#include "strata/device/sim/sim_card.h"

namespace strata::device {
namespace {

// A queue that is full for so long does not move.
constexpr std::chrono::seconds kFullLimit(60);

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

SimFaults::Verdict SimStream::pass(FaultPoint point, const char* op, Bytes bytes) {
  SimFaults::Verdict verdict =
      faults_.pass(point, {.op = op, .bytes = bytes, .free = device().capacity().free});
  if (verdict.fault && faults_.lost()) order_.skip_work_of(device());
  return verdict;
}

// Whether the work of the entry, whose turn has come, does not run now.
bool SimStream::held_up(const Entry& entry, const char* op, Bytes bytes,
                        const SimFaults::Verdict& verdict) {
  if (!verdict.hang && verdict.freeze.count() == 0) return false;
  const Place& at = entry.place;
  device().waits().set_blocked_by(
      format("{}{}{} on stream {} of device {}", op, bytes > 0 ? format(" of {} B", bytes) : "",
             at.what[0] == '\0' ? "" : format(" at {} {}", at.what, at.number), name(),
             device().id().value));
  if (verdict.hang) {
    faults_.hang();
  } else {
    order_.freeze(verdict.freeze);
  }
  return true;
}

// By the rates of the card; nonsense is no rate.
void SimStream::spend(const Cost& cost) {
  const SimCard& card = card_of(device());
  time_ += card.launch_time;
  if (card.facts.memory_rate > 0) {
    const double s = static_cast<double>(cost.read + cost.written) / card.facts.memory_rate;
    time_ += std::chrono::nanoseconds(static_cast<int64_t>(s * 1e9));
  }
  spend_until(device(), time_);
}

void SimStream::spend_copy(const MemView& to, const MemView& from) {
  const SimCard& card = card_of(device());
  const bool within = to.device == device().id() && from.device == device().id();
  const double rate = within ? card.facts.memory_rate : card.facts.link_rate;
  time_ += card.copy_time;
  if (rate > 0) {
    time_ +=
        std::chrono::nanoseconds(static_cast<int64_t>(static_cast<double>(to.bytes) / rate * 1e9));
  }
  spend_until(device(), time_);
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
  // Held up once: when time goes on, so does it.
  const SimFaults::Verdict asked{
      .fault = {},
      .hang = std::exchange(entry.hang, false),
      .freeze = std::exchange(entry.freeze, std::chrono::nanoseconds(0))};
  const char* const op = entry.what == What::kCopy ? "copy" : entry.cost.op;
  if (held_up(entry, op, entry.to.bytes, asked)) return;
  try {
    if (entry.what == What::kReplay) return run_node(entry);
    if (entry.what == What::kLaunch || entry.what == What::kCopy) {
      const SimFaults::Verdict now = pass(FaultPoint::kRun, op, entry.to.bytes);
      if (held_up(entry, op, entry.to.bytes, now)) return;
      if (now.fault) {
        pop();
        throw to_error(*now.fault);
      }
    }
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
  switch (entry.what) {
    case What::kLaunch:
      spend(entry.cost);
      entry.call(body(entry), pool());
      break;
    case What::kCopy:
      spend_copy(entry.to, entry.from);
      copy_bytes(entry.to, entry.from, pool());
      break;
    case What::kRecord:
      entry.event->reached_ = entry.generation;
      entry.event->time_ = time_;
      --entry.event->n_queued_;
      break;
    case What::kWait:
      time_ = std::max(time_, entry.event->time_);
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
  if (node != nullptr) {
    const SimFaults::Verdict now = pass(FaultPoint::kRun, node->cost.op, node->to.bytes);
    if (held_up(entry, node->cost.op, node->to.bytes, now)) return;
    entry.node = entry.graph->next(node);
    if (now.fault) {
      // A lost card has skipped it already.
      if (entry.what == What::kReplay) --entry.graph->n_queued;
      pop();
      throw to_error(*now.fault);
    }
  }
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
  if (node->call == nullptr) {
    spend_copy(node->to, node->from);
  } else {
    spend(node->cost);
  }
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
  entry.hang = false;
  entry.freeze = {};
  entry.place = place();
  return entry;
}

void SimStream::make_room() {
  const SimOrder::Running running(order_);
  const Clock& clock = device().waits().clock();
  const Deadline limit = device().waits().bounded(Deadline::within(kFullLimit, clock));
  while (n_queued_ == kRing) {
    if (!order_.run_one_or_stand(limit.at, clock)) {
      throw Error(ErrorCode::kDevice, format("stream {}: its queue is full and hangs", name()));
    }
  }
}

void SimStream::pop() {
  head_ = (head_ + 1) % kRing;
  --n_queued_;
}

void SimStream::do_launch(const Cost& cost, Call call, const void* from, size_t bytes) {
  const SimFaults::Verdict verdict = pass(FaultPoint::kLaunch, cost.op, cost.read + cost.written);
  if (verdict.fault) throw to_error(*verdict.fault);
  if (capturing()) return recording_.add_launch(cost, call, from, bytes);
  Entry& entry = push(What::kLaunch);
  entry.cost = cost;
  entry.call = call;
  entry.to = entry.from = {};
  entry.hang = verdict.hang;
  entry.freeze = verdict.freeze;
  entry.body_bytes = bytes;
  std::memcpy(body(entry), from, bytes);
}

Try<Done> SimStream::do_copy(const MemView& to, const MemView& from) {
  const SimFaults::Verdict verdict = pass(FaultPoint::kCopy, "copy", to.bytes);
  if (verdict.fault) return *verdict.fault;
  // A card only knows memory of its own or registered with it.
  if (!order_.is_live(to) || !order_.is_live(from)) {
    return Fault{.code = ErrorCode::kUnsupported,
                 .call = "copy of memory that no card knows",
                 .device = device().id()};
  }
  for (const MemView* each : {&to, &from}) {
    if (each->mem != Mem::kDevice || each->device == device().id()) continue;
    if (order_.linked(device().id(), each->device)) continue;
    return Fault{.code = ErrorCode::kUnsupported,
                 .call = "copy between cards without peer access",
                 .device = device().id(),
                 .asked = to.bytes};
  }
  if (capturing()) {
    recording_.add_copy(to, from);
    return Done{};
  }
  Entry& entry = push(What::kCopy);
  entry.to = to;
  entry.from = from;
  entry.hang = verdict.hang;
  entry.freeze = verdict.freeze;
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
  if (const auto verdict = pass(FaultPoint::kCapture, "capture", 0); verdict.fault) {
    return *verdict.fault;
  }
  recording_.clear();
  return Done{};
}

Try<Graph> SimStream::do_end_capture(PlanLineId line, bool spoiled) {
  if (spoiled) return Fault{.call = "end_capture of a spoiled capture", .device = device().id()};
  const Bytes bytes = device().graph_bytes(recording_.n_nodes());
  if (const auto verdict = pass(FaultPoint::kInstantiate, "graph", bytes); verdict.fault) {
    return *verdict.fault;
  }
  return recording_.finish(device(), line);
}

void SimStream::do_replay(const Graph& graph) {
  throw_if_lost();
  if (const auto verdict = pass(FaultPoint::kReplay, "replay", 0); verdict.fault) {
    throw to_error(*verdict.fault);
  }
  auto& work = static_cast<RecordedWork&>(*graph.work());
  STRATA_CHECK(&work.device() == &device());
  Entry& entry = push(What::kReplay);
  entry.graph = &work;
  entry.node = work.first();
  ++work.n_queued;
}

void SimStream::do_release_after(Lease&& lease) { push(What::kRelease).lease = std::move(lease); }

}  // namespace strata::device
