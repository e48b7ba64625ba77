#include "strata/memory/ram_pool.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"

namespace strata::memory {
namespace {

// Reads at the same time: enough that a drive is busy, each of about a MiB.
constexpr int kDepth = 16, kLeastDepth = 3;
constexpr Bytes kBlock = io::DirectReader::kBlock;
// A drive that sleeps takes some seconds; one that is gone never comes.
constexpr std::chrono::milliseconds kSilence = std::chrono::minutes(1);

Bytes largest_part(const std::vector<RamPool::Layer>& layers) {
  Bytes most = 0;
  for (const RamPool::Layer& layer : layers) {
    most = std::max(most, *std::ranges::max_element(layer.shape.part));
  }
  return most;
}

int depth_for(Bytes budget, Bytes buffer) {
  const Bytes n = budget / 8 / std::max<Bytes>(buffer, 1);
  return static_cast<int>(std::clamp<Bytes>(n, kLeastDepth, kDepth));
}

std::vector<SlotClass> classes_for(const std::vector<RamPool::Layer>& layers, int n_experts,
                                   Bytes budget) {
  const Bytes buffer = io::DirectReader::buffer_bytes(largest_part(layers));
  const Bytes buffers = static_cast<Bytes>(depth_for(budget, buffer)) * buffer + kBlock;
  std::vector<Bytes> blobs;
  Bytes least = 0;
  std::map<Bytes, bool> sizes;
  for (const RamPool::Layer& layer : layers) {
    const Bytes blob = SlotTable::stride(layer.shape.bytes());
    blobs.push_back(blob);
    if (blob > 0 && !std::exchange(sizes[blob], true)) least += blob;
  }
  std::vector<SlotClass> classes = share_out(blobs, n_experts, budget - std::min(budget, buffers));
  if (classes.empty()) {
    throw Error(
        ErrorCode::kInvalidArgument,
        format("{} of RAM for experts are too little to compute with: reads and one expert "
               "of each size take {}",
               bytes_text(budget), bytes_text(least + static_cast<Bytes>(kLeastDepth) * buffer)));
  }
  return classes;
}

}  // namespace

Bytes RamPool::most_buffers(Bytes largest_blob) {
  return kDepth * io::DirectReader::buffer_bytes(largest_blob) + kBlock;
}

std::vector<SlotClass> share_out(std::span<const Bytes> blob_of_layer, int n_experts,
                                 Bytes budget) {
  std::map<Bytes, int> layers_of;  // by size
  Bytes one_each = 0;
  for (const Bytes blob : blob_of_layer) {
    if (blob == 0) continue;
    ++layers_of[blob];
    one_each += blob;
  }
  if (one_each == 0) return {};
  const auto each =
      static_cast<int>(std::min<Bytes>(budget / one_each, static_cast<Bytes>(n_experts)));
  std::map<Bytes, int> n;
  Bytes left = budget;
  for (const auto& [blob, layers] : layers_of) {
    n[blob] = each * layers;
    left -= static_cast<Bytes>(n[blob]) * blob;
  }
  // What remains goes to the large ones: small experts fit there, too.
  for (auto it = layers_of.rbegin(); it != layers_of.rend(); ++it) {
    const auto& [blob, layers] = *it;
    const auto most = static_cast<Bytes>(n_experts * layers - n[blob]);
    const Bytes more = std::min(left / blob, most);
    n[blob] += static_cast<int>(more);
    left -= more * blob;
  }
  // One of the largest serves all.
  if (n[layers_of.rbegin()->first] == 0) return {};
  std::vector<SlotClass> classes;
  for (const auto& [blob, count] : n) {
    if (count > 0) classes.push_back({blob, count});
  }
  return classes;
}

RamPool::RamPool(std::vector<Layer> layers, int n_experts, Bytes budget, device::Device& host,
                 Plan& plan)
    : layers_(std::move(layers)),
      n_experts_(n_experts),
      host_(host),
      buffer_bytes_(io::DirectReader::buffer_bytes(largest_part(layers_))),
      table_(classes_for(layers_, n_experts, budget), static_cast<int>(layers_.size()), n_experts),
      states_(static_cast<size_t>(table_.n()), State::kEmpty),
      parts_left_(static_cast<size_t>(table_.n())),
      parts_(static_cast<size_t>(n_experts)) {
  depth_ = depth_for(budget, buffer_bytes_);
  here_.reserve(static_cast<size_t>(n_experts));
  slot_line_ = plan.add({.owner = "experts",
                         .name = "in RAM",
                         .formula = format("{} slots; the others are read from storage", n_slots()),
                         .where = device::kHostId,
                         .bytes = table_.bytes()});
  buffer_line_ = plan.add({.owner = "experts",
                           .name = "reads under way",
                           .formula = format("{} x {} B", depth_, buffer_bytes_),
                           .where = device::kHostId,
                           .bytes = all_buffers()});
}

void RamPool::allocate(std::span<const io::ByteSource* const> files, io::DirectReader::Way way) {
  const auto get = [&](PlanLineId line, Bytes bytes) {
    return value_or_throw(host_.allocate(line, bytes, device::Mem::kPageable));
  };
  slots_ = get(slot_line_, table_.bytes());
  // The system wants whole blocks at whole blocks.
  buffers_ = get(buffer_line_, all_buffers());
  const auto at = reinterpret_cast<uintptr_t>(buffers_.data());
  first_buffer_ = buffers_.data() + (kBlock - at % kBlock) % kBlock;
  reader_ = std::make_unique<io::DirectReader>(depth_, way);
  for (const io::ByteSource* file : files) reader_->add(*file);
  piece_.resize(static_cast<size_t>(depth_));
  for (int i = depth_ - 1; i >= 0; --i) free_buffers_.push_back(i);
}

bool RamPool::start(ExpertPlace place, Why why, const ExpertHeat& heat) {
  const BlobShape& blob = shape(place.layer);
  const int slot = table_.victim(blob.bytes(), heat, stamp_);
  if (slot < 0 || (why == Why::kPreload && table_.at(slot).holds)) return false;
  table_.clear(slot);
  table_.put(slot, place);
  table_.at(slot).pins = 1;  // while it is read
  table_.at(slot).stamp = stamp_;
  states_[static_cast<size_t>(slot)] = State::kLoading;
  parts_left_[static_cast<size_t>(slot)] = 3;
  ++n_loading_;
  for (int i = 0; i < 3; ++i) (why == Why::kMiss ? wanted_ : ahead_).push_back({slot, i});
  ++(why == Why::kMiss      ? counters_.misses
     : why == Why::kPreload ? counters_.preloaded
                            : counters_.look_ahead);
  pump();
  return true;
}

void RamPool::pump() {
  while (!free_buffers_.empty() && !(wanted_.empty() && ahead_.empty())) {
    std::deque<Piece>& from = wanted_.empty() ? ahead_ : wanted_;
    const Piece piece = from.front();
    from.pop_front();
    const int buffer = free_buffers_.back();
    free_buffers_.pop_back();
    piece_[static_cast<size_t>(buffer)] = piece;
    const ExpertPlace place = *table_.at(piece.slot).holds;
    const Layer& layer = layers_[place.layer];
    const BlobFiles::Part& at = layer.files.part[static_cast<size_t>(piece.part)];
    reader_->start({.file = at.file,
                    .offset = at.offset + place.expert * at.stride,
                    .bytes = layer.shape.part[static_cast<size_t>(piece.part)],
                    .buffer = {first_buffer_ + static_cast<Bytes>(buffer) * buffer_bytes_,
                               static_cast<size_t>(buffer_bytes_)},
                    .tag = static_cast<uint64_t>(buffer)});
  }
}

bool RamPool::collect(std::chrono::milliseconds limit) {
  const std::vector<io::DirectReader::Done> done = [&] {
    if (limit.count() == 0) return reader_->collect(limit);
    const device::WaitRegistry::Scope listed(
        host_.waits(), {.who = "experts", .what = "reads from storage"}, device::kHostId,
        device::Deadline::within(limit, host_.waits().clock()));
    return reader_->collect(limit);
  }();
  if (done.empty()) return false;
  const Loop loop{.n_items = static_cast<int64_t>(done.size()), .ns_per_item = 200'000};
  host_.pool().parallel_for(loop, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const io::DirectReader::Done& d = done[static_cast<size_t>(i)];
      if (!d.error.empty()) continue;
      const Piece piece = piece_[d.tag];
      const SlotTable::Slot& slot = table_.at(piece.slot);
      const Layer& layer = layers_[slot.holds->layer];
      std::byte* const to = slots_.data() + slot.offset + layer.shape.offset(piece.part);
      if (layer.files.relay) {
        layer.files.relay(piece.part, d.bytes.data(), to);
      } else {
        std::memcpy(to, d.bytes.data(), d.bytes.size());
      }
    }
  });
  for (const io::DirectReader::Done& d : done) {
    free_buffers_.push_back(static_cast<int>(d.tag));
    const Piece& piece = piece_[d.tag];
    if (d.error.empty()) {
      counters_.bytes +=
          shape(table_.at(piece.slot).holds->layer).part[static_cast<size_t>(piece.part)];
    }
    settle(piece_[d.tag].slot, d.error);
  }
  pump();
  return true;
}

void RamPool::settle(int slot, const std::string& error) {
  State& state = states_[static_cast<size_t>(slot)];
  if (!error.empty()) {
    state = State::kFailed;
    failures_.push_back({*table_.at(slot).holds, error});
  }
  if (--parts_left_[static_cast<size_t>(slot)] > 0) return;
  --n_loading_;
  table_.at(slot).pins = 0;
  if (state == State::kFailed) {
    table_.clear(slot);
    state = State::kEmpty;
    return;
  }
  state = State::kReady;
}

void RamPool::preload(const ExpertHeat& heat, const std::function<bool(ExpertPlace)>& elsewhere,
                      const std::function<void(Bytes, Bytes)>& progress) {
  failures_.clear();
  const auto wait = [&] {
    if (collect(kSilence)) return;
    throw Error(ErrorCode::kIo, format("storage did not answer for {} s", kSilence.count() / 1000));
  };
  Bytes begun = 0;
  for (const ExpertPlace& place : heat.ranked()) {
    if (!has(LayerId(place.layer)) || table_.find(place) >= 0 || elsewhere(place)) continue;
    // Small ones may still fit where a large one does not.
    if (!start(place, Why::kPreload, heat)) continue;
    begun += shape(place.layer).bytes();
    while (n_loading_ > depth_) wait();
    if (!failures_.empty()) throw Error(ErrorCode::kIo, failures_.front().error);
    if (progress) progress(begun, table_.bytes());
  }
  while (n_loading_ > 0) wait();
  if (!failures_.empty()) throw Error(ErrorCode::kIo, failures_.front().error);
}

void RamPool::throw_failure_of(LayerId layer, std::span<const ExpertId> wanted) const {
  for (const Failure& failure : failures_) {
    const auto is_it = [&](ExpertId e) { return failure.place.expert == e.value; };
    if (failure.place.layer == layer.value && std::ranges::any_of(wanted, is_it)) {
      throw Error(ErrorCode::kIo, failure.error);
    }
  }
}

ExpertLease RamPool::acquire(LayerId layer, std::span<const ExpertId> wanted,
                             const ExpertHeat& heat) {
  STRATA_CHECK(!wanted.empty());
  for (const ExpertId e : here_) parts_[static_cast<size_t>(e.value)] = {};
  here_.clear();
  failures_.clear();
  ++stamp_;
  for (const ExpertId e : wanted) {
    const int slot = table_.find(layer.value, e.value);
    if (slot >= 0) table_.at(slot).stamp = stamp_;
  }
  collect(std::chrono::milliseconds(0));
  bool room = true;
  while (true) {
    for (const ExpertId e : wanted) {
      const int slot = table_.find(layer.value, e.value);
      if (slot >= 0 && states_[static_cast<size_t>(slot)] == State::kReady) here_.push_back(e);
    }
    for (const ExpertId e : wanted) {
      if (!room) break;
      if (table_.find(layer.value, e.value) >= 0) continue;
      room = start({static_cast<uint16_t>(layer.value), static_cast<uint16_t>(e.value)}, Why::kMiss,
                   heat);
    }
    if (!here_.empty()) break;
    // Without room somebody else's reads come first, and leave some.
    if (n_loading_ == 0 || !collect(kSilence)) {
      throw Error(ErrorCode::kIo, n_loading_ == 0
                                      ? format("no room for an expert of layer {}", layer.value)
                                      : format("storage did not answer for {} s while experts of "
                                               "layer {} were read",
                                               kSilence.count() / 1000, layer.value));
    }
    throw_failure_of(layer, wanted);
    room = true;
  }
  counters_.uses += here_.size();

  auto free = std::ranges::find_if(leases_, [](const auto& slots) { return slots.empty(); });
  if (free == leases_.end()) free = leases_.emplace(leases_.end());
  for (const ExpertId e : here_) {
    const int slot = table_.find(layer.value, e.value);
    ++table_.at(slot).pins;
    free->push_back(slot);
    const std::byte* const blob = slots_.data() + table_.at(slot).offset;
    for (int i = 0; i < 3; ++i) {
      parts_[static_cast<size_t>(e.value)][static_cast<size_t>(i)] =
          blob + shape(layer.value).offset(i);
    }
  }
  return {.parts = View<const std::byte* const>(parts_.data()->data(), {n_experts_, 3}),
          .here = here_,
          .lease = device::Lease(
              this, static_cast<uint64_t>(free - leases_.begin()),
              [](void* pool, uint64_t key) noexcept { static_cast<RamPool*>(pool)->unpin(key); })};
}

void RamPool::unpin(uint64_t lease) noexcept {
  for (const int slot : leases_[lease]) --table_.at(slot).pins;
  leases_[lease].clear();
}

void RamPool::expect(LayerId layer, std::span<const ExpertId> experts, const ExpertHeat& heat) {
  if (!has(layer)) return;
  for (const ExpertId e : experts) {
    // What a step waits for comes first, and a wrong guess should not cost much.
    if (!wanted_.empty() || n_loading_ >= depth_) return;
    if (table_.find(layer.value, e.value) >= 0) continue;
    if (!start({static_cast<uint16_t>(layer.value), static_cast<uint16_t>(e.value)},
               Why::kLookAhead, heat)) {
      return;
    }
  }
}

PoolCounters RamPool::counters() const {
  PoolCounters counters = counters_;
  counters.under_way = static_cast<uint64_t>(n_loading_);
  if (reader_) counters.io_bytes = reader_->counters().bytes;
  return counters;
}

void RamPool::forget(ExpertPlace place) {
  if (!has(LayerId(place.layer))) return;
  const int slot = table_.find(place);
  if (slot < 0 || table_.at(slot).pins > 0) return;
  table_.clear(slot);
  states_[static_cast<size_t>(slot)] = State::kEmpty;
}

}  // namespace strata::memory
