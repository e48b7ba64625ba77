#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "strata/device/device.h"
#include "strata/io/direct_reader.h"
#include "strata/memory/expert_blob.h"
#include "strata/memory/expert_heat.h"
#include "strata/memory/expert_store.h"
#include "strata/memory/plan.h"
#include "strata/memory/slot_table.h"

namespace strata::memory {

struct PoolCounters {
  uint64_t uses = 0;        // experts that leases had
  uint64_t misses = 0;      // that had to be read because a step wanted them
  uint64_t look_ahead = 0;  // read because one may want them soon
  uint64_t preloaded = 0;   // read before the first step
  uint64_t under_way = 0;   // of these three, not here yet
  uint64_t bytes = 0;       // that came
  uint64_t io_bytes = 0;    // as the reader itself counts them
};

// Experts in a bounded part of RAM, the others in files, from where they are read as they are
// wanted, in the place of the coldest. One engine thread.
class RamPool {
 public:
  struct Layer {
    BlobShape shape;  // of 0 B: a layer that lies elsewhere
    BlobFiles files;
  };
  // Bytes for slots and for the buffers of reads together; at least one expert of each layer's size
  // has room. Adds the lines; host outlives this.
  // Errors: kInvalidArgument if budget is too little for that, naming what would do.
  RamPool(std::vector<Layer> layers, int n_experts, Bytes budget, device::Device& host, Plan& plan);

  // At most so much of a budget are buffers.
  static Bytes most_buffers(Bytes largest_blob);

  // files: what BlobFiles counts. Errors: kResourceExhausted; those of DirectReader::add.
  void allocate(std::span<const io::ByteSource* const> files,
                io::DirectReader::Way way = io::DirectReader::Way::kUring);
  // Reads the hottest until the pool is full, except where `elsewhere` says that another tier has
  // them. progress(bytes so far, bytes that will be). Errors: kIo.
  void preload(const ExpertHeat& heat, const std::function<bool(ExpertPlace)>& elsewhere,
               const std::function<void(Bytes, Bytes)>& progress);

  bool has(LayerId layer) const {
    return layers_[static_cast<size_t>(layer.value)].shape.bytes() > 0;
  }
  // As ExpertStore::acquire: those that are here, while the others are read; waits if there are
  // none. Errors: kIo if one that is wanted cannot be read, or storage is silent for a minute.
  ExpertLease acquire(LayerId layer, std::span<const ExpertId> wanted, const ExpertHeat& heat);
  // Begins to read some of these, as far as that delays nobody.
  void expect(LayerId layer, std::span<const ExpertId> experts, const ExpertHeat& heat);
  // Another tier has it now: its room here is free.
  void forget(ExpertPlace place);

  int n_slots() const { return table_.n(); }
  Bytes slot_bytes() const { return table_.bytes(); }
  PoolCounters counters() const;

 private:
  enum class State : uint8_t { kEmpty, kLoading, kFailed, kReady };
  enum class Why : uint8_t { kMiss, kLookAhead, kPreload };
  struct Piece {  // one matrix of an expert
    int slot = -1;
    int part = 0;
  };

  const BlobShape& shape(int layer) const { return layers_[static_cast<size_t>(layer)].shape; }
  Bytes all_buffers() const {  // begins at a whole block within
    return static_cast<Bytes>(depth_) * buffer_bytes_ + io::DirectReader::kBlock;
  }
  bool start(ExpertPlace place, Why why, const ExpertHeat& heat);
  void pump();
  // Puts what was read in its place. False: nothing came within the limit.
  bool collect(std::chrono::milliseconds limit);
  void settle(int slot, const std::string& error);
  // Of one that was to be read, if it failed. What nobody asked for may fail.
  void throw_failure_of(LayerId layer, std::span<const ExpertId> wanted) const;
  void unpin(uint64_t lease) noexcept;

  std::vector<Layer> layers_;
  int n_experts_;
  device::Device& host_;
  int depth_ = 0;
  Bytes buffer_bytes_ = 0;
  SlotTable table_;
  std::vector<State> states_;        // of each slot
  std::vector<uint8_t> parts_left_;  // to be read, of a slot that loads
  struct Failure {
    ExpertPlace place;
    std::string error;
  };
  std::vector<Failure> failures_;  // since the last lease
  PlanLineId slot_line_, buffer_line_;
  device::Allocation slots_, buffers_;
  std::byte* first_buffer_ = nullptr;
  std::unique_ptr<io::DirectReader> reader_;
  std::deque<Piece> wanted_, ahead_;  // not yet asked for; wanted ones come first
  std::vector<Piece> piece_;          // of each buffer that is in use
  std::vector<int> free_buffers_;
  int n_loading_ = 0;

  std::vector<ExpertStore::Parts> parts_;  // [experts] of the last lease
  std::vector<ExpertId> here_;
  std::vector<std::vector<int>> leases_;  // slots of each; empty: free
  uint64_t stamp_ = 1;
  PoolCounters counters_;
};

// Slots for experts of these sizes (of each layer; 0: none of this layer), about equally many for
// each, that take at most `budget` bytes and have room for at least one of each size. Empty: that
// does not fit.
std::vector<SlotClass> share_out(std::span<const Bytes> blob_of_layer, int n_experts, Bytes budget);

}  // namespace strata::memory
