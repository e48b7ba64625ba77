#include "strata/model/away_experts.h"

#include <algorithm>
#include <chrono>
#include <span>

#include "strata/base/carver.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/model/expert_leases.h"

namespace strata::model {
namespace {

// Pairs that go back at once: enough to fill the threads with a prompt's, little memory.
constexpr int kPairs = 512;
// The wait for a card whose work before may be a long prompt chunk.
constexpr std::chrono::minutes kLimit(10);

void wait_for(const device::Event& event, const char* what) {
  const device::WaitRegistry& waits = event.device().waits();
  const Clock::TimePoint begun = waits.clock().now();
  const auto deadline = device::Deadline::within(kLimit, waits.clock());
  if (device::wait(event, {.who = "experts on the host", .what = what}, deadline)) return;
  throw Error(ErrorCode::kDevice, format("{} did not come from {} {}", what, event.device().name(),
                                         waits.late_text(begun)));
}

}  // namespace

AwayExperts::AwayExperts(const Stage& stage, const Stages& stages, const Shape& shape)
    : stage_(stage),
      host_(*stages.host_stream),
      shape_(shape),
      first_(static_cast<size_t>(shape.n_experts) + 1),
      pair_(static_cast<size_t>(shape.max_rows) * static_cast<size_t>(shape.top_k)) {
  wanted_.reserve(static_cast<size_t>(shape.n_experts));
  rest_.reserve(static_cast<size_t>(shape.n_experts));
}

int AwayExperts::pairs() const { return std::min(kPairs, shape_.max_rows * shape_.top_k); }

Bytes AwayExperts::carve_host(std::byte* base) {
  Carver m(base);
  id_ = m.take<int32_t>(int64_t{shape_.max_rows} * shape_.top_k);
  x_ = m.take<float>(int64_t{shape_.max_rows} * shape_.width);
  for (Half& half : halves_) {
    half.id = m.take<int32_t>(pairs());
    half.x_row = m.take<int32_t>(pairs());
    half.index = m.take<int32_t>(1 + pairs());
    half.rows = m.take<float>(int64_t{pairs()} * shape_.width);
  }
  return m.peak();
}

Bytes AwayExperts::carve_card(std::byte* base) {
  Carver m(base);
  for (Half& half : halves_) {
    half.card_index = m.take<int32_t>(1 + pairs());
    half.card_rows = m.take<float>(int64_t{pairs()} * shape_.width);
  }
  return m.peak();
}

void AwayExperts::measure(OpPass& pass, const kernels::ExpertShape& shape) {
  OpPass host(host_, OpPass::Mode::kMeasure);
  const int64_t n = pairs(), width = shape_.width;
  host.run(host.ops.expert_ffn,
           kernels::ExpertFfn{.x = View<const float>(nullptr, {shape_.max_rows, width}),
                              .id = View<const int32_t>(nullptr, {n, 1}),
                              .x_row = View<const int32_t>(nullptr, {n}),
                              .parts = View<const std::byte* const>(nullptr, {shape_.n_experts, 3}),
                              .shape = shape,
                              .out = View<float>(nullptr, {n, 1, width})});
  scratch_bytes_ = std::max(scratch_bytes_, host.peak());
  const int64_t all = int64_t{shape_.max_rows} * shape_.top_k;
  pass.run(pass.ops.scatter_rows, kernels::ScatterRows{.index = View<const int32_t>(nullptr, {n}),
                                                       .x = View<const float>(nullptr, {n, width}),
                                                       .out = View<float>(nullptr, {all, width})});
}

void AwayExperts::declare(memory::Plan& plan) {
  const std::string formula =
      format("{} rows, 2 x {} choices of {} f32", shape_.max_rows, pairs(), shape_.width);
  host_line_ = plan.add({.owner = "experts",
                         .name = "rows computed on the host",
                         .formula = formula,
                         .where = device::kHostId,
                         .bytes = carve_host(nullptr)});
  scratch_line_ = plan.add({.owner = "experts",
                            .name = "scratch on the host",
                            .formula = format("{} choices at once", pairs()),
                            .where = device::kHostId,
                            .bytes = scratch_bytes_});
  card_line_ = plan.add({.owner = "experts",
                         .name = "rows from the host",
                         .formula = formula,
                         .where = stage_.device->id(),
                         .bytes = carve_card(nullptr)});
}

void AwayExperts::allocate() {
  device::Device& card = *stage_.device;
  host_memory_ = value_or_throw(card.allocate_staging(host_line_, carve_host(nullptr)));
  card_memory_ = value_or_throw(card.allocate(card_line_, carve_card(nullptr), card.work_memory()));
  device::Device& host = host_.device();
  scratch_ = value_or_throw(host.allocate(scratch_line_, scratch_bytes_, host.work_memory()));
  carve_host(host_memory_.data());
  carve_card(card_memory_.data());
  for (Half& half : halves_) half.copied = card.make_event();
  fetched_ = card.make_event();
}

void AwayExperts::fetch(View<const int32_t> id, View<const float> x, int n_rows) {
  n_rows_ = n_rows;
  const auto bring = [&](auto* to, const auto* from, int64_t width) {
    const Bytes bytes = static_cast<Bytes>(n_rows * width) * sizeof(*to);
    const auto at = static_cast<Bytes>(reinterpret_cast<std::byte*>(to) - host_memory_.data());
    value_or_throw(
        stage_.stream->copy(host_memory_.view().part(at, bytes),
                            stage_.at(const_cast<void*>(static_cast<const void*>(from)), bytes)));
  };
  bring(id_, id.data(), shape_.top_k);
  bring(x_, x.data(), shape_.width);
  stage_.stream->record(*fetched_);
}

void AwayExperts::group(LayerId layer, const memory::CardSlots& slots) {
  const int n_pairs = n_rows_ * shape_.top_k;
  std::ranges::fill(first_, 0);
  for (int p = 0; p < n_pairs; ++p) ++first_[static_cast<size_t>(id_[p]) + 1];
  wanted_.clear();
  for (int e = 0; e < shape_.n_experts; ++e) {
    const auto i = static_cast<size_t>(e);
    if (first_[i + 1] > 0 && !slots.holds(layer, ExpertId(e))) wanted_.emplace_back(e);
    first_[i + 1] += first_[i];
  }
  // Filling moves first[e] to the start of e + 1: shift back afterwards.
  for (int p = 0; p < n_pairs; ++p) {
    pair_[static_cast<size_t>(first_[static_cast<size_t>(id_[p])]++)] = p;
  }
  std::shift_right(first_.begin(), first_.end(), 1);
  first_.front() = 0;
}

void AwayExperts::compute(LayerId layer, const kernels::ExpertShape& shape,
                          memory::ExpertStore& store, memory::CardSlots& slots,
                          memory::ExpertHeat& heat, View<float> out) {
  wait_for(*fetched_, "the choice of experts");
  group(layer, slots);
  const int64_t n_pairs = int64_t{n_rows_} * shape_.top_k;
  int64_t misses = 0;
  for (const ExpertId e : wanted_) {
    const auto i = static_cast<size_t>(e.value);
    misses += first_[i + 1] - first_[i];
  }
  slots.count(layer, n_pairs - misses, wanted_, misses);
  heat.used(layer, {id_, static_cast<size_t>(n_pairs)});
  for_leases(store, layer, wanted_, rest_,
             [&](const memory::ExpertLease& lease) { compute_some(shape, lease, out); });
}

void AwayExperts::compute_some(const kernels::ExpertShape& shape, const memory::ExpertLease& lease,
                               View<float> out) {
  const int64_t width = shape_.width;
  OpPass pass(host_, OpPass::Mode::kRun,
              View<std::byte>(scratch_.data(), {static_cast<int64_t>(scratch_bytes_)}));
  int n = 0;
  Half* half = nullptr;
  const auto flush = [&] {
    if (n == 0) return;
    const int64_t max = pairs();
    pass.run(pass.ops.expert_ffn,
             kernels::ExpertFfn{.n_rows = half->index,
                                .x = View<const float>(x_, {n_rows_, width}),
                                .id = View<const int32_t>(half->id, {max, 1}),
                                .x_row = View<const int32_t>(half->x_row, {max}),
                                .parts = lease.parts,
                                .shape = shape,
                                .out = View<float>(half->rows, {max, 1, width})});
    send(*half, n, out);
    n = 0;
  };
  for (const ExpertId e : lease.here) {
    for (int i = first_[static_cast<size_t>(e.value)]; i < first_[static_cast<size_t>(e.value) + 1];
         ++i) {
      if (n == 0) {
        half = &halves_[next_half_];
        next_half_ = 1 - next_half_;
        wait_for(*half->copied, "the copy of expert rows");
      }
      const int32_t p = pair_[static_cast<size_t>(i)];
      half->id[n] = e.value;
      half->x_row[n] = p / shape_.top_k;
      half->index[0] = ++n;
      half->index[n] = p;
      if (n == pairs()) flush();
    }
  }
  flush();
}

void AwayExperts::send(const Half& half, int n, View<float> out) {
  const int64_t max = pairs(), width = shape_.width;
  const auto bring = [&](auto* to, const auto* from, int64_t count) {
    const Bytes bytes = static_cast<Bytes>(count) * sizeof(*to);
    const auto at =
        static_cast<Bytes>(reinterpret_cast<const std::byte*>(from) - host_memory_.data());
    value_or_throw(stage_.stream->copy(stage_.at(to, bytes), host_memory_.view().part(at, bytes)));
  };
  bring(half.card_rows, half.rows, n * width);
  bring(half.card_index, half.index, 1 + n);
  OpPass card(*stage_.stream, OpPass::Mode::kRun);
  card.run(
      card.ops.scatter_rows,
      kernels::ScatterRows{.n_rows = half.card_index,
                           .index = View<const int32_t>(half.card_index + 1, {max}),
                           .x = View<const float>(half.card_rows, {max, width}),
                           .out = View<float>(out.data(), {out.extent(0) * out.extent(1), width})});
  stage_.stream->record(*half.copied);
}

}  // namespace strata::model
