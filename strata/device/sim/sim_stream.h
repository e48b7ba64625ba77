#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "strata/device/recording.h"
#include "strata/device/sim/sim_faults.h"
#include "strata/device/sim/sim_order.h"
#include "strata/device/stream.h"

namespace strata::device {

// A queue in a ring made once; SimOrder takes from its head. A full ring runs something to make
// room, which a card would do too.
class SimStream final : public Stream {
 public:
  SimStream(Device& device, std::string name, SimOrder& order);
  ~SimStream() override;

  // For SimOrder.
  bool runnable() const;
  bool hangs() const { return faults_.hangs(); }
  void run_head();
  // Launches and copies that are queued will not be done; events and leases keep their turn.
  void skip_queued() { skip_from(0); }
  // The op of a queued entry that names the memory, or null.
  const char* queued_use_of(const MemView& view) const;
  uint64_t preference = 0;

 private:
  enum class What : uint8_t { kLaunch, kCopy, kRecord, kWait, kReplay, kRelease, kSkipped };
  struct Entry {
    What what = What::kLaunch;
    Cost cost;
    Call call = nullptr;
    size_t body_bytes = 0;
    MemView to, from;
    SimEvent* event = nullptr;
    uint64_t generation = 0;  // of the event: reached by a record, awaited by a wait
    RecordedWork* graph = nullptr;
    const RecordedNode* node = nullptr;  // the next to run
    Lease lease;
    // By a fault rule, when its turn comes.
    bool hang = false;
    std::chrono::nanoseconds freeze{0};
    Place place;
  };
  // Apart from the entries, so that the pages of bodies never used are never touched.
  struct alignas(kMaxBodyAlign) Body {
    std::byte bytes[kMaxBody];
  };
  static constexpr size_t kRing = 1024;

  void do_launch(const Cost& cost, Call call, const void* from, size_t bytes) override;
  Try<Done> do_copy(const MemView& to, const MemView& from) override;
  void do_record(Event& event) override;
  void do_wait(const Event& event) override;
  Try<Done> do_begin_capture() override;
  Try<Graph> do_end_capture(PlanLineId line, bool spoiled) override;
  void do_replay(const Graph& graph) override;
  void do_release_after(Lease&& lease) override;

  Entry& push(What what);
  void make_room();
  const Entry& at(size_t i) const { return ring_[(head_ + i) % kRing]; }
  std::byte* body(const Entry& entry) const { return bodies_[&entry - ring_.get()].bytes; }
  void pop();
  void run_entry(Entry& entry);
  void run_node(Entry& entry);
  void skip_from(size_t i);
  // What the rules say; a lost card loses what is queued on all its streams.
  SimFaults::Verdict pass(FaultPoint point, const char* op, Bytes bytes);
  bool held_up(const Entry& entry, const char* op, Bytes bytes, const SimFaults::Verdict& verdict);
  void spend(const Cost& cost);
  void spend_copy(const MemView& to, const MemView& from);
  void throw_if_lost();

  SimOrder& order_;
  SimFaults& faults_;
  std::unique_ptr<Entry[]> ring_;
  std::unique_ptr<Body[]> bodies_;  // of the entry with the same index
  size_t head_ = 0, n_queued_ = 0;
  Recording recording_;
  std::chrono::nanoseconds time_{0};  // of the card's own clock, when the work so far is done
};

}  // namespace strata::device
