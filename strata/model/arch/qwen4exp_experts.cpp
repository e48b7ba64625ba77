#include "strata/model/arch/qwen4exp_experts.h"

#include <algorithm>
#include <cstring>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/model/arch/qwen4exp_weights.h"
#include "strata/quant/tiles.h"

namespace strata::model {
namespace {

const Stage& stage_of(const Stages& stages, int layer) {
  const auto it = std::ranges::find_if(
      stages.list, [layer](const Stage& stage) { return layer < stage.end_layer; });
  return it != stages.list.end() ? *it : stages.last();  // the draft layer
}

Bytes bytes_of(const kernels::Weight& w) {
  return static_cast<Bytes>(w.rows) * quant::row_bytes(w.type, w.cols);
}

memory::BlobShape blob_shape(const kernels::ExpertShape& shape) {
  return {.part = {bytes_of(shape.gate), bytes_of(shape.up), bytes_of(shape.down)}};
}

// A matrix as the file has it, in the packing of w.
void relay(const kernels::Weight& w, const std::byte* raw, std::byte* to) {
  if (w.packing != kernels::Packing::kTiles) {
    std::memcpy(to, raw, bytes_of(w));
    return;
  }
  const Bytes tile = quant::kTileRows * quant::row_bytes(w.type, w.cols);
  for (Bytes at = 0; at < bytes_of(w); at += tile) {
    quant::to_tile(w.type, w.cols, raw + at, to + at);
  }
}

const memory::StageSlots* slots_of(const ExpertTiers& tiers, DeviceId where) {
  const auto it = std::ranges::find(tiers.cards, where, &memory::StageSlots::where);
  return it != tiers.cards.end() ? &*it : nullptr;
}

}  // namespace

Qwen4ExpExperts::Qwen4ExpExperts(const gguf::Model& file, const Qwen4ExpConfig& config,
                                 const ModelOptions& options, bool draft, const Stages& stages,
                                 memory::Plan& plan)
    : file_(file),
      c_(config),
      options_(options),
      stages_(stages),
      n_layers_(draft ? config.n_blocks() : config.n_layers),
      weights_(file, *stages.host, options.packing, "experts in RAM"),
      layers_(static_cast<size_t>(config.n_blocks())),
      heat_(config.n_blocks(), config.n_experts, options.experts.profile.get()),
      store_(config.n_blocks()),
      slots_(stages.list.size()) {
  bool any = false;
  for (int l = 0; l < n_layers_; ++l) {
    const Stage& stage = stage_of(stages_, l);
    whole_.push_back(lies_whole(l, stage));
    if (whole_.back() || (options_.experts_apart && stage.is_host())) continue;
    Layer& layer = layers_[static_cast<size_t>(l)];
    const bool in_ram = !options_.experts_apart && !options_.experts.ram;
    collect_experts(c_, l, weights_, layer.shape, in_ram ? &layer.parts : nullptr, &layer.files);
    any = true;
  }
  if (!any) return;
  weights_.declare_lines(plan);
  if (options_.experts.ram && !options_.experts_apart) add_pool(plan);
  add_slots(plan);
}

void Qwen4ExpExperts::add_pool(memory::Plan& plan) {
  std::vector<memory::RamPool::Layer> pooled(layers_.size());
  for (size_t l = 0; l < layers_.size(); ++l) {
    if (static_cast<int>(l) >= n_layers_ || whole_[l]) continue;
    const kernels::ExpertShape& shape = layers_[l].shape;
    pooled[l] = {.shape = blob_shape(shape), .files = layers_[l].files};
    pooled[l].files.relay = [shape](int part, const std::byte* raw, std::byte* to) {
      relay(part == 0 ? shape.gate : part == 1 ? shape.up : shape.down, raw, to);
    };
  }
  pool_ = std::make_unique<memory::RamPool>(std::move(pooled), c_.n_experts, *options_.experts.ram,
                                            *stages_.host, plan);
  store_.add_pool(*pool_, heat_);
}

bool Qwen4ExpExperts::lies_whole(int layer, const Stage& stage) const {
  if (options_.experts_apart) return false;
  if (stage.is_host()) return !options_.experts.ram;
  const memory::StageSlots* slots = slots_of(options_.experts, stage.device->id());
  if (slots == nullptr) return true;
  const auto named = std::ranges::find(slots->layers, layer);
  return named != slots->layers.end() &&
         slots->slots[static_cast<size_t>(named - slots->layers.begin())] >= c_.n_experts;
}

void Qwen4ExpExperts::add_slots(memory::Plan& plan) {
  std::vector<memory::BlobShape> shapes;
  for (const Layer& layer : layers_) shapes.push_back(blob_shape(layer.shape));
  for (size_t i = 0; i < stages_.list.size(); ++i) {
    const Stage& stage = stages_.list[i];
    if (stage.is_host()) continue;
    std::vector<int> layers;
    for (int l = 0; l < n_layers_; ++l) {
      if (&stage_of(stages_, l) == &stage && !whole(l)) layers.push_back(l);
    }
    if (layers.empty()) continue;
    // Of whole layers the stage has the memory.
    memory::StageSlots slots{.where = stage.device->id()};
    if (const memory::StageSlots* all = slots_of(options_.experts, slots.where)) {
      for (size_t k = 0; k < all->layers.size(); ++k) {
        const int l = all->layers[k];
        if (l >= n_layers_ || whole(l)) continue;
        slots.layers.push_back(l);
        slots.slots.push_back(all->slots[k]);
        const Bytes bytes = shapes[static_cast<size_t>(l)].bytes();
        const auto same = std::ranges::find(slots.classes, bytes, &memory::SlotClass::bytes);
        if (same != slots.classes.end()) {
          same->n += all->slots[k];
        } else {
          slots.classes.push_back({bytes, all->slots[k]});
        }
      }
    }
    slots_[i] = std::make_unique<memory::CardSlots>(
        *stage.device, slots, std::move(layers), shapes, c_.n_experts,
        memory::CardSlots::Options{.slots_planned = options_.experts_apart,
                                   .max_swaps = options_.experts.max_swaps,
                                   .margin = options_.experts.swap_margin},
        plan);
  }
}

bool Qwen4ExpExperts::on_card(memory::ExpertPlace place) const {
  return std::ranges::any_of(slots_, [&](const auto& slots) {
    return slots && slots->holds(LayerId(place.layer), ExpertId(place.expert));
  });
}

void Qwen4ExpExperts::load(const std::function<void(Bytes, Bytes)>& progress) {
  weights_.place(progress);
  if (pool_) {
    std::vector<const io::ByteSource*> files;
    for (size_t i = 0; i < file_.shards().size(); ++i) {
      files.push_back(&file_.source(static_cast<int>(i)));
    }
    pool_->allocate(files);
  }
  for (int l = 0; l < n_layers_; ++l) {
    Layer& layer = layers_[static_cast<size_t>(l)];
    if (!layer.parts.empty()) store_.add_layer(LayerId(l), std::move(layer.parts));
  }
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i]) continue;
    slots_[i]->allocate();
    slots_[i]->fill(store_, heat_, *stages_.list[i].stream);
  }
  if (!pool_) return;
  const Bytes before = weights_.bytes().copied();
  pool_->preload(
      heat_, [this](memory::ExpertPlace p) { return on_card(p); },
      [&](Bytes done, Bytes total) {
        if (progress) progress(before + done, before + total);
      });
}

memory::SlotCounters Qwen4ExpExperts::slot_counters() const {
  memory::SlotCounters sum;
  for (const auto& slots : slots_) {
    if (!slots) continue;
    const memory::SlotCounters& c = slots->counters();
    sum.filled += c.filled;
    sum.swapped += c.swapped;
    sum.hits += c.hits;
    sum.misses += c.misses;
  }
  return sum;
}

memory::PoolCounters Qwen4ExpExperts::pool_counters() const {
  return pool_ ? pool_->counters() : memory::PoolCounters{};
}

void Qwen4ExpExperts::between_steps(int n_rows) {
  heat_.age(n_rows);
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i]) continue;
    try {
      slots_[i]->swap(store_, heat_, *stages_.list[i].stream);
    } catch (const Error& e) {
      // The step needs no newcomer: the host computes what the card does not have.
      if (e.code() != ErrorCode::kIo) throw;
      log_warning(format("an expert was not brought to {}: {}", stages_.list[i].device->name(),
                         e.message()));
    }
  }
}

}  // namespace strata::model
