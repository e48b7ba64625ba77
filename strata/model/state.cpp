#include "strata/model/state.h"

#include <algorithm>

#include "strata/base/carver.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/kernels/op_table.h"

namespace strata::model {
namespace {

kernels::Tail carve_tail(Carver& c, const StateSpec& spec, int depth, int width) {
  if (depth == 0) return {};
  return {.state = c.view<float>({spec.slots, 2, depth, width}),
          .log = c.view<float>({spec.slots, spec.window, width})};
}

// 64-bit FNV-1a, of bytes of the device among others.
class Hash {
 public:
  // Where the next arrays lie.
  void set_part(const StatePart& part) { part_ = &part; }
  void add(std::span<const std::byte> bytes) {
    for (const std::byte each : bytes) {
      value_ = (value_ ^ static_cast<uint64_t>(each)) * 0x100000001B3ull;
    }
  }
  void add_floats(const float* from, int64_t n) {
    const std::vector<float> floats = part_->copies->read(*part_->stream, from, n);
    add(std::as_bytes(std::span(floats)));
  }
  // Keys and values of the first n tokens of these pages, and the pooled keys of their blocks.
  void add_cells(const kernels::KvPool& kv, std::span<const int32_t> pages, int64_t n) {
    for (int64_t first = 0; first < n; first += kv.page_tokens) {
      const int64_t page = pages[static_cast<size_t>(first / kv.page_tokens)];
      read_page(kv.k, page, kv.page_bytes(kv.dk), k_);
      read_page(kv.v, page, kv.page_bytes(kv.dv), v_);
      for (int64_t i = first; i < std::min<int64_t>(n, first + kv.page_tokens); ++i) {
        for (int h = 0; h < kv.kv_heads; ++h) {
          add_cell(kv, k_, i, h, kv.dk);
          add_cell(kv, v_, i, h, kv.dv);
        }
      }
    }
    if (kv.pooled == nullptr) return;
    const int64_t size = kernels::bytes_of(kv.pooled_type()) * kv.index_dim;
    for (int64_t b = 0; b < n / kv.ratio; ++b) {
      if (b % kv.blocks_per_page() == 0) {
        const int64_t page = pages[static_cast<size_t>(b / kv.blocks_per_page())];
        read_page(kv.pooled, page, kv.pooled_page_bytes(), k_);
      }
      add_part(k_, kv.pooled_cell_of_page(0, b), size);
    }
  }
  uint64_t value() const { return value_; }

 private:
  void read_page(const std::byte* pool, int64_t page, int64_t bytes, std::vector<std::byte>& to) {
    to.resize(static_cast<size_t>(bytes));
    part_->copies->read(*part_->stream, pool + page * bytes, std::span(to));
  }
  void add_cell(const kernels::KvPool& kv, const std::vector<std::byte>& page, int64_t index,
                int head, int dim) {
    add_part(page, kv.cell_of_page(0, index, head, dim), dim * kernels::bytes_of(kv.type));
    if (kv.type != kernels::CacheType::kI8) return;
    add_part(page, kv.scale_of_page(0, index, head, dim), sizeof(float));
  }
  void add_part(const std::vector<std::byte>& page, int64_t at, int64_t bytes) {
    add(std::span(page).subspan(static_cast<size_t>(at), static_cast<size_t>(bytes)));
  }

  const StatePart* part_ = nullptr;
  uint64_t value_ = 0xCBF29CE484222325ull;
  std::vector<std::byte> k_, v_;
};

}  // namespace

StatePools::StatePools(const StateSpec& spec, std::vector<StatePart> parts, memory::Plan& plan)
    : spec_(spec), parts_(std::move(parts)), layers_(spec.layers.size()) {
  for (const StatePart& part : parts_) {
    Bytes cells = 0, recurrent = 0;
    carve_cells(part, nullptr, &cells);
    carve_recurrent(part, nullptr, &recurrent);
    Memory& memory = memory_.emplace_back();
    memory.cell_line = plan.add({.owner = "state",
                                 .name = spec.name + " cells",
                                 .formula = format("{} slots x {} tokens, {}", spec.slots,
                                                   spec.max_context, kernels::name_of(spec.cache)),
                                 .where = part.device->id(),
                                 .bytes = cells});
    memory.recurrent_line =
        plan.add({.owner = "state",
                  .name = spec.name + " recurrent",
                  .formula = format("{} slots x 2 copies, window of {}", spec.slots, spec.window),
                  .where = part.device->id(),
                  .bytes = recurrent});
  }
}

const StatePart& StatePools::part_of(int layer) const {
  const auto it = std::ranges::find_if(
      parts_, [layer](const StatePart& part) { return layer < part.end_layer; });
  STRATA_CHECK(it != parts_.end() && layer >= it->first_layer);
  return *it;
}

void StatePools::carve_cells(const StatePart& part, std::byte* base, Bytes* bytes) {
  Carver c(base);
  const int64_t pages = int64_t{spec_.slots} * spec_.pages_per_slot();
  for (auto l = static_cast<size_t>(part.first_layer); l < static_cast<size_t>(part.end_layer);
       ++l) {
    const LayerStateSpec& s = spec_.layers[l];
    if (s.kv_heads == 0) continue;
    kernels::KvPool& kv = layers_[l].kv;
    kv = {.type = spec_.cache,
          .page_tokens = spec_.page_tokens,
          .kv_heads = s.kv_heads,
          .dk = s.dk,
          .dv = s.dv,
          .index_dim = s.index_dim,
          .ratio = s.ratio};
    kv.k = c.take<std::byte>(pages * kv.page_bytes(s.dk));
    kv.v = c.take<std::byte>(pages * kv.page_bytes(s.dv));
    if (s.ratio > 0) kv.pooled = c.take<std::byte>(pages * kv.pooled_page_bytes());
  }
  *bytes = c.peak();
}

void StatePools::carve_recurrent(const StatePart& part, std::byte* base, Bytes* bytes) {
  Carver c(base);
  for (auto l = static_cast<size_t>(part.first_layer); l < static_cast<size_t>(part.end_layer);
       ++l) {
    const LayerStateSpec& s = spec_.layers[l];
    LayerState& layer = layers_[l];
    if (s.ratio > 1) layer.raw_keys = carve_tail(c, spec_, s.ratio - 1, s.index_dim);
    if (s.value_heads > 0) {
      layer.delta = {
          .s = c.view<float>({spec_.slots, 2, int64_t{s.value_heads} * s.delta_dk, s.delta_dv}),
          .log_g = c.view<float>({spec_.slots, spec_.window, s.value_heads}),
          .log_k = c.view<float>({spec_.slots, spec_.window, int64_t{s.key_heads} * s.delta_dk}),
          .log_d = c.view<float>({spec_.slots, spec_.window, int64_t{s.value_heads} * s.delta_dv})};
    }
    layer.conv = carve_tail(c, spec_, s.conv_depth, s.conv_width);
    layer.ple = carve_tail(c, spec_, s.ple_depth, s.ple_width);
  }
  *bytes = c.peak();
}

void StatePools::allocate() {
  for (size_t i = 0; i < parts_.size(); ++i) {
    const StatePart& part = parts_[i];
    Memory& memory = memory_[i];
    const device::Mem mem = part.device->work_memory();
    Bytes bytes = 0;
    carve_cells(part, nullptr, &bytes);
    memory.cells = value_or_throw(part.device->allocate(memory.cell_line, bytes, mem));
    carve_cells(part, memory.cells.data(), &bytes);
    carve_recurrent(part, nullptr, &bytes);
    memory.recurrent = value_or_throw(part.device->allocate(memory.recurrent_line, bytes, mem));
    carve_recurrent(part, memory.recurrent.data(), &bytes);
  }
  // Handed out from the back: low numbers first.
  for (int slot = spec_.slots - 1; slot >= 0; --slot) free_slots_.push_back(slot);
  for (int page = n_pages() - 1; page >= 0; --page) free_pages_.push_back(page);
  page_users_.assign(free_pages_.size(), 0);
}

int StatePools::take_slot() {
  if (free_slots_.empty()) return -1;
  const int slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}
// Within the capacity of allocate: nothing is allocated, so nothing throws.
void StatePools::give_slot(int slot) noexcept { free_slots_.push_back(slot); }

std::vector<int32_t> StatePools::take_pages(int n) {
  while (n > n_free_pages() && reclaim_ && reclaim_()) {
  }
  if (n > n_free_pages()) {
    throw Error(ErrorCode::kResourceExhausted,
                format("{} pages are needed, {} are free", n, n_free_pages()));
  }
  std::vector<int32_t> pages(free_pages_.rbegin(), free_pages_.rbegin() + n);
  free_pages_.resize(free_pages_.size() - static_cast<size_t>(n));
  share_pages(pages);
  return pages;
}
void StatePools::share_pages(std::span<const int32_t> pages) noexcept {
  for (const int32_t page : pages) ++page_users_[static_cast<size_t>(page)];
}
void StatePools::give_pages(std::span<const int32_t> pages) noexcept {
  for (size_t i = pages.size(); i > 0; --i) {
    const int32_t page = pages[i - 1];
    if (--page_users_[static_cast<size_t>(page)] == 0) free_pages_.push_back(page);
  }
}

std::vector<StatePools::RecurrentArray> StatePools::recurrent(int slot, int side) const {
  std::vector<RecurrentArray> arrays;
  for (int l = 0; l < n_layers(); ++l) {
    const LayerState& state = layer(l);
    const StatePart* part = &part_of(l);
    const auto add_tail = [&](const kernels::Tail& tail) {
      if (!tail.state) return;
      arrays.push_back({View<float>(tail.side(slot, side), {tail.depth(), tail.width()}), part});
    };
    add_tail(state.raw_keys);
    if (state.delta.s) {
      arrays.push_back({View<float>(state.delta.side(slot, side),
                                    {state.delta.s.extent(2), state.delta.s.extent(3)}),
                        part});
    }
    add_tail(state.conv);
    add_tail(state.ple);
  }
  return arrays;
}

void StatePools::reset(int slot) {
  for (int side = 0; side < 2; ++side) {
    for (const RecurrentArray& array : recurrent(slot, side)) {
      device::Stream& stream = *array.part->stream;
      kernels::run(stream, kernels::ops_for(stream).zero, {.out = array.values});
    }
  }
}

// By the shapes: the plan asks before there is memory.
Bytes StatePools::recurrent_bytes() const {
  int64_t n = 0;
  for (const LayerState& layer : layers_) {
    for (const kernels::Tail* tail : {&layer.raw_keys, &layer.conv, &layer.ple}) {
      if (tail->state.rank() > 0) n += tail->depth() * tail->width();
    }
    if (layer.delta.s.rank() > 0) n += layer.delta.s.extent(2) * layer.delta.s.extent(3);
  }
  return static_cast<Bytes>(n) * sizeof(float);
}

PageLease::~PageLease() {
  if (pools_ != nullptr) pools_->give_pages(pages_);
}

void PageLease::grow(int n_pages) {
  if (n_pages <= size()) return;
  pages_.reserve(static_cast<size_t>(n_pages));
  const std::vector<int32_t> more = pools_->take_pages(n_pages - size());
  pages_.insert(pages_.end(), more.begin(), more.end());
}

PageLease PageLease::share(int n_pages) const {
  PageLease lease(*pools_);
  lease.pages_.assign(pages_.begin(), pages_.begin() + n_pages);
  pools_->share_pages(lease.pages_);
  return lease;
}

SlotLease::SlotLease(StatePools& pools, int n_pages) {
  if (pools.n_free_slots() == 0 || pools.n_unreserved_pages() < n_pages) {
    throw Error(ErrorCode::kResourceExhausted,
                format("a slot and {} pages are needed; {} slots and {} pages are free", n_pages,
                       pools.n_free_slots(), pools.n_unreserved_pages()));
  }
  slot_ = pools.take_slot();
  pools.reserve_pages(n_pages);
  n_pages_ = n_pages;
  pools_ = &pools;
}

SlotLease::~SlotLease() {
  if (pools_ == nullptr) return;
  pools_->reserve_pages(-n_pages_);
  pools_->give_slot(slot_);
}

SessionState::SessionState(StatePools& pools, int64_t max_tokens)
    : pools_(pools), max_tokens_(max_tokens), pages_(pools) {
  STRATA_CHECK(max_tokens > 0 && max_tokens <= pools.spec().max_context);
  const int page = pools.spec().page_tokens;
  try {
    lease_ = SlotLease(pools, static_cast<int>((max_tokens + page - 1) / page));
  } catch (Error& e) {
    e.with(format("a session of {} tokens", max_tokens));
    throw;
  }
}

// For so many tokens more: within the session, and in pages.
void SessionState::require_room(size_t n_tokens) {
  const auto total = static_cast<int64_t>(ids_.size() + n_tokens);
  if (total > max_tokens_) {
    throw Error(ErrorCode::kInvalidArgument,
                format("{} tokens do not fit into a session of {} that holds {}", n_tokens,
                       max_tokens_, ids_.size()));
  }
  const int page = pools_.spec().page_tokens;
  pages_.grow(static_cast<int>((total + page - 1) / page));
}

void SessionState::begin(std::span<const int32_t> ids) {
  STRATA_CHECK(n_pending() == 0);
  require_room(ids.size());
  if (n_committed_ == 0) pools_.reset(slot());
  ids_.insert(ids_.end(), ids.begin(), ids.end());
}

void SessionState::extend(std::span<const int32_t> ids) {
  STRATA_CHECK(n_pending() > 0);
  require_room(ids.size());
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  extended_ = true;
}

void SessionState::commit(int n_kept) noexcept {
  STRATA_CHECK(n_kept >= 0 && n_kept <= n_pending());
  // Of a longer step there is no log to replay a part of.
  STRATA_CHECK(n_kept == 0 || n_kept == n_pending() || n_pending() <= pools_.spec().window);
  STRATA_CHECK(n_kept == 0 || !extended_);
  extended_ = false;
  n_committed_ += static_cast<size_t>(n_kept);
  ids_.resize(n_committed_);
  if (n_kept > 0) side_ = 1 - side_;
}

Rope::Position SessionState::position(int64_t index) const {
  const int32_t p = static_cast<int32_t>(index);
  return {p, p, p};
}

Checkpoint SessionState::checkpoint() const {
  STRATA_CHECK(n_pending() == 0);
  Checkpoint checkpoint{.ids = ids_};
  if (ids_.empty()) return checkpoint;
  for (const auto& [values, part] : pools_.recurrent(slot(), side_)) {
    checkpoint.recurrent.push_back(part->copies->read(*part->stream, values.data(), values.size()));
  }
  return checkpoint;
}

void SessionState::restore(const Checkpoint& checkpoint) {
  STRATA_CHECK(n_pending() == 0);
  const int64_t n = static_cast<int64_t>(checkpoint.ids.size());
  if (n > max_tokens_) {
    throw Error(
        ErrorCode::kInvalidArgument,
        format("a checkpoint of {} tokens does not fit into a session of {}", n, max_tokens_));
  }
  // The other side, so that the session stays as it is if a copy fails.
  using Array = StatePools::RecurrentArray;
  const std::vector<Array> arrays =
      n == 0 ? std::vector<Array>{} : pools_.recurrent(slot(), 1 - side_);
  const bool same = std::equal(arrays.begin(), arrays.end(), checkpoint.recurrent.begin(),
                               checkpoint.recurrent.end(),
                               [](const Array& array, const std::vector<float>& values) {
                                 return static_cast<size_t>(array.values.size()) == values.size();
                               });
  if (!same) {
    throw Error(ErrorCode::kInvalidArgument,
                format("a checkpoint of {} arrays is not one of this model, which has {}",
                       checkpoint.recurrent.size(), arrays.size()));
  }
  std::vector<int32_t> ids = checkpoint.ids;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const StatePart& part = *arrays[i].part;
    part.copies->write(*part.stream, arrays[i].values.data(),
                       std::as_bytes(std::span(checkpoint.recurrent[i])));
  }
  if (n > 0) side_ = 1 - side_;
  ids_ = std::move(ids);
  n_committed_ = ids_.size();
}

uint64_t SessionState::hash() const {
  STRATA_CHECK(n_pending() == 0);
  Hash hash;
  if (ids_.empty()) return hash.value();  // the state is zero, or will be
  hash.add(std::as_bytes(std::span(ids_)));
  const int64_t n = n_committed();
  const auto add_tail = [&](const kernels::Tail& tail, int64_t rows) {
    if (!tail.state) return;
    const float* end = tail.side(slot(), side_) + tail.depth() * tail.width();
    const int64_t values = std::min(rows, tail.depth()) * tail.width();
    hash.add_floats(end - values, values);
  };
  for (int l = 0; l < pools_.n_layers(); ++l) {
    const LayerState& layer = pools_.layer(l);
    hash.set_part(pools_.part_of(l));
    if (layer.delta.s) {
      hash.add_floats(layer.delta.side(slot(), side_),
                      layer.delta.s.extent(2) * layer.delta.s.extent(3));
    }
    add_tail(layer.conv, layer.conv.state ? layer.conv.depth() : 0);
    add_tail(layer.ple, layer.ple.state ? layer.ple.depth() : 0);
    if (!layer.kv.k) continue;
    // Only the raw keys of the open block matter; older rows of the tail are history.
    add_tail(layer.raw_keys, layer.kv.ratio > 0 ? n % layer.kv.ratio : 0);
    hash.add_cells(layer.kv, pages(), n);
  }
  return hash.value();
}

}  // namespace strata::model
