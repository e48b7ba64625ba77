#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "strata/device/device.h"
#include "strata/kernels/ops/attention.h"
#include "strata/kernels/ops/gdn.h"
#include "strata/memory/plan.h"
#include "strata/model/host_copy.h"
#include "strata/model/rope.h"
#include "strata/model/stage.h"

namespace strata::model {

// Sizes of the state of one layer. Fields that are 0 are not there.
struct LayerStateSpec {
  // Attention.
  int kv_heads = 0, dk = 0, dv = 0, index_dim = 0, ratio = 0;
  // Gated DeltaNet.
  int key_heads = 0, value_heads = 0, delta_dk = 0, delta_dv = 0;
  // Causal convolutions: of DeltaNet, and of the n-gram embedding.
  int conv_depth = 0, conv_width = 0;
  int ple_depth = 0, ple_width = 0;
};

struct StateSpec {
  std::string name;  // in the plan: "trunk", "draft"
  std::vector<LayerStateSpec> layers;
  int slots = 1;
  int64_t max_context = 0;  // tokens a slot can hold
  int page_tokens = 64;
  int window = 16;  // rows of which a part can be committed
  kernels::CacheType cache = kernels::CacheType::kF16;

  int pages_per_slot() const {
    return static_cast<int>((max_context + page_tokens - 1) / page_tokens);
  }
};

// Views of one layer's state in the pools; empty where the layer has none.
struct LayerState {
  kernels::KvPool kv;
  kernels::Tail raw_keys;
  kernels::DeltaState delta;
  kernels::Tail conv;
  kernels::Tail ple;
};

// The layers whose state lies with one stage.
struct StatePart {
  device::Device* device = nullptr;
  device::Stream* stream = nullptr;    // computes their steps
  HostCopy* copies = nullptr;          // for checkpoints, hashes and made-up state
  int first_layer = 0, end_layer = 0;  // of the pools' spec
};

// The memory of all sessions: a slot of each recurrent state, twice (committed and next), and pages
// of cells, each layer's on the device that computes it. Allocated once, before READY; slots and
// pages are handed out and come back; a number means the same on every device.
class StatePools {
 public:
  // parts: in order of layers, without gaps; what they name outlives this.
  StatePools(const StateSpec& spec, std::vector<StatePart> parts, memory::Plan& plan);
  void allocate();

  const StateSpec& spec() const { return spec_; }
  const LayerState& layer(int l) const { return layers_[static_cast<size_t>(l)]; }
  int n_layers() const { return static_cast<int>(layers_.size()); }
  const StatePart& part_of(int layer) const;

  // For SlotLease. -1 if none is free.
  int take_slot();
  void give_slot(int slot) noexcept;
  int n_free_slots() const { return static_cast<int>(free_slots_.size()); }
  // For PageLease. What others keep without need is taken from them where pages are short.
  // Errors: kResourceExhausted; nothing is taken then.
  std::vector<int32_t> take_pages(int n);
  void share_pages(std::span<const int32_t> pages) noexcept;
  void give_pages(std::span<const int32_t> pages) noexcept;
  int n_free_pages() const { return static_cast<int>(free_pages_.size()); }
  // Gives pages back that are kept without need, and says whether there were any.
  void set_reclaim(std::function<bool()> reclaim) { reclaim_ = std::move(reclaim); }

  // Pages that no session may come to need: sessions reserve, and take when they get there. So what
  // is not reserved is free, or kept without need.
  int n_unreserved_pages() const { return n_pages() - n_reserved_; }
  void reserve_pages(int n) { n_reserved_ += n; }  // negative: no longer
  int n_pages() const { return spec_.slots * spec_.pages_per_slot(); }

  // Zeroes both copies of a slot's recurrent state, on the parts' streams.
  void reset(int slot);

  // Every array of committed recurrent state of a slot, in a fixed order, and where it lies.
  struct RecurrentArray {
    View<float> values;
    const StatePart* part;
  };
  std::vector<RecurrentArray> recurrent(int slot, int side) const;
  Bytes recurrent_bytes() const;  // of all of them

 private:
  struct Memory {
    PlanLineId cell_line, recurrent_line;
    device::Allocation cells, recurrent;
  };
  void carve_cells(const StatePart& part, std::byte* base, Bytes* bytes);
  void carve_recurrent(const StatePart& part, std::byte* base, Bytes* bytes);

  StateSpec spec_;
  std::vector<StatePart> parts_;
  std::vector<Memory> memory_;  // of each part
  std::vector<LayerState> layers_;
  std::vector<int> free_slots_;
  std::vector<int32_t> free_pages_;
  std::vector<int32_t> page_users_;  // of each page
  int n_reserved_ = 0;
  std::function<bool()> reclaim_;
};

// Pages that somebody uses. A page goes back when nobody does any more. The pools outlive it.
class PageLease {
 public:
  PageLease() = default;
  explicit PageLease(StatePools& pools) : pools_(&pools) {}
  PageLease(PageLease&& other) noexcept { swap(other); }
  PageLease& operator=(PageLease&& other) noexcept {
    PageLease(std::move(other)).swap(*this);
    return *this;
  }
  ~PageLease();

  std::span<const int32_t> pages() const { return pages_; }
  int size() const { return static_cast<int>(pages_.size()); }
  // Errors: those of StatePools::take_pages.
  void grow(int n_pages);
  // The first n_pages of these, used by one more.
  PageLease share(int n_pages) const;

 private:
  void swap(PageLease& other) noexcept {
    std::swap(pools_, other.pools_);
    std::swap(pages_, other.pages_);
  }

  StatePools* pools_ = nullptr;
  std::vector<int32_t> pages_;
};

// A slot that somebody has, and the right to so many pages; they go back when it goes.
class SlotLease {
 public:
  SlotLease() = default;
  // Errors: kResourceExhausted; nothing is taken then.
  SlotLease(StatePools& pools, int n_pages);
  SlotLease(SlotLease&& other) noexcept { swap(other); }
  SlotLease& operator=(SlotLease&& other) noexcept {
    SlotLease(std::move(other)).swap(*this);
    return *this;
  }
  ~SlotLease();

  int slot() const { return slot_; }

 private:
  void swap(SlotLease& other) noexcept {
    std::swap(pools_, other.pools_);
    std::swap(slot_, other.slot_);
    std::swap(n_pages_, other.n_pages_);
  }

  StatePools* pools_ = nullptr;
  int slot_ = -1, n_pages_ = 0;
};

// Cells of the first tokens of a session, as they are: shared where a page is full, so that none
// may be written any more.
struct KeptCells {
  std::vector<int32_t> ids;
  PageLease pages;
};

// A copy of a session's recurrent state as of one token. The cells stay in the session's pages: it
// can be restored while they have not been overwritten.
struct Checkpoint {
  std::vector<int32_t> ids;
  std::vector<std::vector<float>> recurrent;  // empty without ids: all zero
};

// The bytes of a page, of all layers: for files.
Bytes page_bytes(const StatePools& pools);
// Errors: those of HostCopy.
void read_page(const StatePools& pools, int32_t page, std::span<std::byte> to);
void write_page(const StatePools& pools, int32_t page, std::span<const std::byte> from);

// All state of one session: a handle on a slot and its pages, and the tokens they stand for.
// Forward writes only behind n_committed (pending rows, the other side); commit publishes. Nothing
// else changes it. One engine thread.
class SessionState {
 public:
  // Takes a slot and the right to pages for max_tokens, at most StateSpec::max_context.
  // Errors: kResourceExhausted.
  SessionState(StatePools& pools, int64_t max_tokens);
  SessionState(const SessionState&) = delete;
  SessionState& operator=(const SessionState&) = delete;

  bool is_of(const StatePools& pools) const { return &pools_ == &pools; }
  int slot() const { return lease_.slot(); }
  int side() const { return side_; }
  std::span<const int32_t> pages() const { return pages_.pages(); }
  int64_t max_tokens() const { return max_tokens_; }

  // Committed tokens, and all of them with the pending ones.
  int64_t n_committed() const { return n_committed_; }
  std::span<const int32_t> ids() const { return ids_; }
  int n_pending() const { return static_cast<int>(ids_.size() - n_committed_); }

  // Before a forward: these tokens are computed. While nothing is committed, the state is zeroed on
  // the streams first, by each step that tries: a failed one may have lost the zeroing, too.
  // Errors: kInvalidArgument beyond max_tokens; those of Stream::run. Nothing is pending then.
  void begin(std::span<const int32_t> ids);
  // More tokens behind those that are pending, computed by a step of their own. They can only be
  // taken back, as what forward wrote for the others beside cells is lost to them.
  // Errors: as begin; the others stay pending.
  void extend(std::span<const int32_t> ids);
  // After it: the first n_kept pending tokens count. The caller has replayed the recurrent state
  // where 0 < n_kept < n_pending(), which only a step within StateSpec::window allows. 0: the step
  // never happened.
  void commit(int n_kept) noexcept;

  // Text positions; images will shift them.
  Rope::Position position(int64_t index) const;

  // Wait for the streams. Only while nothing is pending. Errors: those of HostCopy.
  Checkpoint checkpoint() const;
  // Errors: also kInvalidArgument for a checkpoint of more tokens than max_tokens or of another
  // model. The session then is what it was.
  void restore(const Checkpoint& checkpoint);
  // What is committed, to go on from in another session: cells that are shared from now on, and the
  // recurrent state as StatePools::recurrent_bytes() bytes. Only while nothing is pending, and
  // something is committed. Errors: those of HostCopy.
  KeptCells keep(std::span<std::byte> recurrent) const;
  // Of a session that holds nothing yet. A page that is not full is copied, as both go on in it.
  // Errors: those of HostCopy, of take_pages; kInvalidArgument beyond max_tokens. The session is
  // then of no use any more.
  void resume(const KeptCells& kept, std::span<const std::byte> recurrent);

  // Of the committed state: equal after any history that gave the same tokens.
  uint64_t hash() const;

 private:
  void require_room(size_t n_tokens);

  StatePools& pools_;
  int64_t max_tokens_ = 0;
  SlotLease lease_;
  PageLease pages_;
  int side_ = 0;
  std::vector<int32_t> ids_;
  size_t n_committed_ = 0;
  bool extended_ = false;
};

}  // namespace strata::model
