#pragma once

#include <cstddef>
#include <vector>

#include "strata/device/stream.h"

namespace strata::device {

// One recorded launch or copy; the body's bytes follow. For devices whose graphs are lists.
struct RecordedNode {
  Cost cost;
  Stream::Call call = nullptr;  // null: a copy
  MemView to{}, from{};
  size_t body_bytes = 0;

  const void* body() const;
  void run(ThreadPool& pool) const;
};

// What such a device keeps as Graph::Work: nodes one after the other. They lie where the host that
// runs them can read them; the memory of the plan is what they would take on a card.
class RecordedWork final : public Graph::Work {
 public:
  RecordedWork(Device& device, Allocation memory, std::vector<std::byte> nodes)
      : device_(device), memory_(std::move(memory)), nodes_(std::move(nodes)) {}
  ~RecordedWork() override;

  Device& device() const { return device_; }
  // Nodes in order: first(), then next() until null.
  const RecordedNode* first() const { return at(0); }
  const RecordedNode* next(const RecordedNode* node) const;

  // Replays queued and not done; the destructor insists on none.
  int n_queued = 0;

 private:
  const RecordedNode* at(size_t offset) const;

  Device& device_;
  Allocation memory_;
  std::vector<std::byte> nodes_;
};

// A capture going on. Grows on the heap: captures are made between steps.
class Recording {
 public:
  void clear() {
    bytes_.clear();
    n_nodes_ = 0;
  }
  void add_launch(const Cost& cost, Stream::Call call, const void* body, size_t body_bytes);
  void add_copy(const MemView& to, const MemView& from);
  size_t n_nodes() const { return n_nodes_; }
  // Takes memory of the line for the nodes. Faults: as Device::allocate.
  Try<Graph> finish(Device& device, PlanLineId line);

 private:
  void add(const RecordedNode& node, const void* body);

  std::vector<std::byte> bytes_;
  size_t n_nodes_ = 0;
};

// Copies on the pool where that is faster. The ranges do not overlap.
void copy_bytes(const MemView& to, const MemView& from, ThreadPool& pool);

}  // namespace strata::device
