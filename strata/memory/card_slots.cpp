#include "strata/memory/card_slots.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/device/recording.h"

namespace strata::memory {
namespace {

constexpr std::chrono::minutes kLimit(5);
constexpr size_t kAhead = 8;  // experts that are read while one is copied

void drain(device::Stream& stream) {
  if (stream.drain({"experts", "the first ones on their way to a card"}, kLimit)) return;
  throw Error(ErrorCode::kDevice, format("experts did not reach {} within {} minutes",
                                         stream.device().name(), kLimit.count()));
}

}  // namespace

CardSlots::CardSlots(device::Device& device, const StageSlots& slots, std::vector<int> layers,
                     std::vector<BlobShape> shapes, int n_experts, const Options& options,
                     Plan& plan)
    : device_(device),
      layers_(std::move(layers)),
      first_(layers_.size()),
      rows_(shapes.size(), -1),
      shapes_(std::move(shapes)),
      n_experts_(n_experts),
      options_(options),
      table_(slots.classes, static_cast<int>(shapes_.size()), n_experts) {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const int l = layers_[i];
    rows_[static_cast<size_t>(l)] = static_cast<int>(i);
    largest_ = std::max(largest_, shape(l).bytes());
    const auto named = std::ranges::find(slots.layers, l);
    if (named != slots.layers.end()) {
      first_[i] = slots.slots[static_cast<size_t>(named - slots.layers.begin())];
    }
  }
  if (!options.slots_planned && table_.n() > 0) {
    slot_line_ = plan.add({.owner = "experts",
                           .name = "slots",
                           .formula = format("{} slots", table_.n()),
                           .where = device.id(),
                           .bytes = table_.bytes()});
  }
  const Bytes addresses = table_bytes() + sizeof(uint64_t);
  const std::string formula = format("{} layers x {} experts x 3", layers_.size(), n_experts);
  address_line_ = plan.add({.owner = "experts",
                            .name = "addresses",
                            .formula = formula,
                            .where = device.id(),
                            .bytes = addresses});
  host_address_line_ = plan.add({.owner = "experts",
                                 .name = "addresses (host)",
                                 .formula = formula,
                                 .where = device::kHostId,
                                 .bytes = addresses + sizeof(uint64_t)});
  ring_line_ = plan.add({.owner = "experts",
                         .name = "on their way to a card",
                         .formula = format("{} x {} B", ring(), largest_),
                         .where = device::kHostId,
                         .bytes = static_cast<Bytes>(ring()) * largest_});
}

void CardSlots::allocate() {
  const auto get = [&](PlanLineId line, Bytes bytes, device::Mem mem) {
    return value_or_throw(device_.allocate(line, bytes, mem));
  };
  const Bytes bytes = table_bytes() + sizeof(uint64_t);
  if (table_.n() > 0) {
    slots_ = get(slot_line_, table_.bytes(), device_.work_memory());
    ring_ =
        value_or_throw(device_.allocate_staging(ring_line_, static_cast<Bytes>(ring()) * largest_));
  }
  addresses_ = get(address_line_, bytes, device_.work_memory());
  host_addresses_ =
      value_or_throw(device_.allocate_staging(host_address_line_, bytes + sizeof(uint64_t)));
  std::memset(host_addresses_.data(), 0, host_addresses_.bytes());
}

View<const std::byte* const> CardSlots::parts(LayerId layer) const {
  const int64_t first = int64_t{row_of(layer.value)} * n_experts_;
  return {reinterpret_cast<const std::byte* const*>(addresses_.data()) + 3 * first,
          {n_experts_, 3}};
}

void CardSlots::set_address(ExpertPlace place, const std::byte* blob, device::Stream& stream) {
  const Bytes at =
      (static_cast<Bytes>(row_of(place.layer)) * static_cast<Bytes>(n_experts_) + place.expert) *
      sizeof(Parts);
  Parts parts{};
  for (int i = 0; blob != nullptr && i < 3; ++i) {
    parts[static_cast<size_t>(i)] = blob + shape(place.layer).offset(i);
  }
  std::memcpy(host_addresses_.data() + at, parts.data(), sizeof(Parts));
  value_or_throw(stream.copy(addresses_.view().part(at, sizeof(Parts)),
                             host_addresses_.view().part(at, sizeof(Parts))));
}

// Into a slot that is empty; `ring` is the piece of host memory to go through.
void CardSlots::bring(ExpertPlace place, int slot, int ring, ExpertStore& store,
                      device::Stream& stream) {
  const ExpertId wanted(place.expert);
  const BlobShape& blob = shape(place.layer);
  const device::MemView way = ring_.view().part(static_cast<Bytes>(ring) * largest_, blob.bytes());
  ExpertLease lease = store.acquire(LayerId(place.layer), {&wanted, 1});
  for (int i = 0; i < 3; ++i) {
    const Bytes n = blob.part[static_cast<size_t>(i)];
    const std::byte* const from = lease.parts.row(place.expert)[i];
    device::copy_bytes(way.part(blob.offset(i), n),
                       {.data = const_cast<std::byte*>(from), .bytes = n}, device_.pool());
  }
  lease.lease.release();
  store.moved(LayerId(place.layer), wanted);
  const device::MemView to = slots_.view().part(table_.at(slot).offset, blob.bytes());
  value_or_throw(stream.copy(to, way));
  set_address(place, to.data, stream);
  table_.put(slot, place);  // what failed before this is not there
  table_.at(slot).stamp = stamp_;
  ++counters_.filled;
}

// Reads of what comes next go on while one is copied.
void CardSlots::announce(std::span<const ExpertPlace> places, ExpertStore& store) const {
  for (const ExpertPlace& place : places) {
    const ExpertId id(place.expert);
    store.expect(LayerId(place.layer), {&id, 1}, Urgency::kNextStep);
  }
}

void CardSlots::fill(ExpertStore& store, const ExpertHeat& heat, device::Stream& stream) {
  value_or_throw(
      stream.copy(addresses_.view(), host_addresses_.view().part(0, addresses_.bytes())));
  drain(stream);  // the host's table is written again
  std::vector<int> left = first_;
  std::vector<ExpertPlace> places;
  for (const ExpertPlace& place : heat.ranked()) {
    const int row = row_of(place.layer);
    if (row < 0 || left[static_cast<size_t>(row)] == 0) continue;
    --left[static_cast<size_t>(row)];
    places.push_back(place);
  }
  int in_ring = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    const int slot = table_.victim(shape(places[i].layer).bytes(), heat, 0);
    if (slot < 0 || table_.at(slot).holds) continue;
    announce(std::span(places).subspan(i, std::min<size_t>(kAhead, places.size() - i)), store);
    bring(places[i], slot, in_ring, store, stream);
    if (++in_ring < ring()) continue;
    drain(stream);
    in_ring = 0;
  }
  drain(stream);
}

void CardSlots::count(LayerId layer, int64_t hits, std::span<const ExpertId> missed,
                      int64_t misses) {
  counters_.hits += static_cast<uint64_t>(hits);
  counters_.misses += static_cast<uint64_t>(misses);
  if (table_.n() == 0) return;
  for (const ExpertId e : missed) {
    missed_.push_back({static_cast<uint16_t>(layer.value), static_cast<uint16_t>(e.value)});
  }
}

void CardSlots::confirm(device::Stream& stream) {
  const Bytes at = table_bytes(), n = sizeof(stamp_);
  std::memcpy(host_addresses_.data() + at, &stamp_, n);
  value_or_throw(stream.copy(addresses_.view().part(at, n), host_addresses_.view().part(at, n)));
  value_or_throw(
      stream.copy(host_addresses_.view().part(at + n, n), addresses_.view().part(at, n)));
}

// The host computes what the card may not have.
void CardSlots::take_back(device::Stream& stream) {
  uint64_t confirmed = 0;
  std::memcpy(&confirmed, host_addresses_.data() + table_bytes() + sizeof(confirmed),
              sizeof(confirmed));
  if (confirmed == stamp_) {
    unconfirmed_.clear();
    return;
  }
  while (!unconfirmed_.empty()) {
    const ExpertPlace place = unconfirmed_.back();
    if (const int slot = table_.find(place); slot >= 0) table_.clear(slot);
    set_address(place, nullptr, stream);
    unconfirmed_.pop_back();
  }
}

int CardSlots::swap(ExpertStore& store, const ExpertHeat& heat, device::Stream& stream) {
  if (!unconfirmed_.empty()) take_back(stream);
  const auto hotter = [&](const ExpertPlace& a, const ExpertPlace& b) {
    return heat.of(a) > heat.of(b);
  };
  // The same expert may have been missed in several steps: enough to choose from.
  const size_t some = std::min(missed_.size(), static_cast<size_t>(8 * options_.max_swaps));
  std::partial_sort(missed_.begin(), missed_.begin() + static_cast<std::ptrdiff_t>(some),
                    missed_.end(), hotter);
  ++stamp_;  // what comes now does not go now
  int n = 0;
  for (size_t i = 0; i < some && n < options_.max_swaps; ++i) {
    const ExpertPlace place = missed_[i];
    if (table_.find(place) >= 0) continue;
    const int slot = table_.victim(shape(place.layer).bytes(), heat, stamp_);
    if (slot < 0) continue;
    if (const std::optional<ExpertPlace> old = table_.at(slot).holds) {
      if (heat.of(place) <= heat.of(*old) * options_.margin) continue;
      table_.clear(slot);
      set_address(*old, nullptr, stream);
      ++counters_.swapped;
    }
    unconfirmed_.push_back(place);
    bring(place, slot, n++, store, stream);
  }
  missed_.clear();
  if (n > 0) confirm(stream);
  return n;
}

}  // namespace strata::memory
