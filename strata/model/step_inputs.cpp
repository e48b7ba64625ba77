#include "strata/model/step_inputs.h"

#include <algorithm>
#include <cstring>

#include "strata/base/carver.h"
#include "strata/base/check.h"
#include "strata/base/format.h"

namespace strata::model {

StepInputs::Arrays StepInputs::carve(std::byte* base, Bytes* bytes) const {
  Carver c(base);
  const StepShape& s = shape_;
  Arrays a{};
  a.counts = c.take<int32_t>(4);
  a.id = c.take<int32_t>(s.max_rows);
  a.slot = c.take<int32_t>(s.max_rows);
  a.index = c.take<int32_t>(s.max_rows);
  a.seq_slot = c.take<int32_t>(s.max_seqs);
  a.seq_first = c.take<int32_t>(s.max_seqs);
  a.seq_rows = c.take<int32_t>(s.max_seqs);
  a.side = c.take<int32_t>(s.slots);
  a.pages = c.take<int32_t>(int64_t{s.slots} * s.pages_per_slot);
  a.out_index = c.take<int32_t>(s.max_out);
  a.kept = c.take<int32_t>(s.max_seqs);
  a.source = c.take<int32_t>(s.max_rows);
  a.rope = c.take<float>(int64_t{s.max_rows} * 2 * s.pairs);
  a.rope_block = c.take<float>(int64_t{s.max_rows} * 2 * s.pairs);
  a.ple_rows = c.take<int64_t>(int64_t{s.max_rows} * s.ple_rows);
  *bytes = c.peak();
  return a;
}

Bytes StepInputs::table_bytes() const {
  Bytes bytes = 0;
  carve(nullptr, &bytes);
  return bytes;
}

StepInputs::StepInputs(const StepShape& shape, std::span<const Stage> stages, memory::Plan& plan)
    : shape_(shape) {
  const std::string formula = format("{} rows, {} sequences", shape.max_rows, shape.max_seqs);
  for (const Stage& stage : stages) {
    copies_.push_back(
        {.stream = stage.stream,
         .table = StagedTable(*stage.device, plan, "step inputs", formula, table_bytes())});
  }
}

void StepInputs::allocate() {
  Bytes bytes = 0;
  for (Copy& copy : copies_) {
    copy.table.allocate();
    const Arrays at = carve(copy.table.on_device(), &bytes);
    std::fill_n(copy.table.on_host(), bytes, std::byte{0});
    copy.at = at;
    copy.rows = {.n_rows = at.counts,
                 .n_seqs = at.counts + 1,
                 .id = at.id,
                 .slot = at.slot,
                 .index = at.index,
                 .seq_slot = at.seq_slot,
                 .seq_first = at.seq_first,
                 .seq_rows = at.seq_rows,
                 .side = at.side,
                 .pages = at.pages,
                 .rope = at.rope,
                 .rope_block = at.rope_block,
                 .pages_per_slot = shape_.pages_per_slot,
                 .max_rows = shape_.max_rows,
                 .max_seqs = shape_.max_seqs};
  }
  host_ = carve(copies_.front().table.on_host(), &bytes);
  std::fill_n(host_.pages, int64_t{shape_.slots} * shape_.pages_per_slot, -1);
}

void StepInputs::begin() {
  n_rows_ = n_seqs_ = n_out_ = 0;
  std::fill_n(host_.counts, 4, 0);
}

void StepInputs::add(const Sequence& sequence, const Rope& rope) {
  const int n = static_cast<int>(sequence.ids.size());
  STRATA_CHECK(n > 0 && n_rows_ + n <= shape_.max_rows && n_seqs_ < shape_.max_seqs);
  const size_t width = static_cast<size_t>(2 * shape_.pairs);
  for (int t = 0; t < n; ++t) {
    const size_t row = static_cast<size_t>(n_rows_ + t), i = static_cast<size_t>(t);
    host_.id[row] = sequence.ids[i];
    host_.slot[row] = sequence.slot;
    host_.index[row] = sequence.first_index + t;
    host_.source[row] = static_cast<int32_t>(row);
    rope.fill(sequence.positions[i], {host_.rope + row * width, width});
    rope.fill(sequence.block_positions[i], {host_.rope_block + row * width, width});
  }
  std::copy(sequence.ple_rows.begin(), sequence.ple_rows.end(),
            host_.ple_rows + int64_t{n_rows_} * shape_.ple_rows);
  host_.seq_slot[n_seqs_] = sequence.slot;
  host_.seq_first[n_seqs_] = n_rows_;
  host_.seq_rows[n_seqs_] = n;
  host_.kept[n_seqs_] = -1;
  n_rows_ += n;
  ++n_seqs_;
  host_.counts[0] = n_rows_;
  host_.counts[1] = n_seqs_;
  host_.counts[3] = n_rows_ * shape_.streams;
}

void StepInputs::set_outputs(std::span<const int32_t> rows) {
  STRATA_CHECK(static_cast<int>(rows.size()) <= shape_.max_out);
  n_out_ = static_cast<int>(rows.size());
  std::copy(rows.begin(), rows.end(), host_.out_index);
  host_.counts[2] = n_out_;
}

void StepInputs::set_sources(std::span<const int32_t> rows) {
  STRATA_CHECK(static_cast<int>(rows.size()) == n_rows_);
  std::copy(rows.begin(), rows.end(), host_.source);
}

void StepInputs::set_pages(int slot, std::span<const int32_t> pages) {
  int32_t* row = host_.pages + int64_t{slot} * shape_.pages_per_slot;
  std::fill_n(row, shape_.pages_per_slot, -1);
  std::copy(pages.begin(), pages.end(), row);
}

void StepInputs::set_side(int slot, int side) { host_.side[slot] = side; }

void StepInputs::set_kept(int sequence, int kept) { host_.kept[sequence] = kept; }

void StepInputs::upload() {
  // The arrays before rope are small; of the long ones only the rows in use.
  upload(host_.counts, static_cast<Bytes>(reinterpret_cast<std::byte*>(host_.rope) -
                                          reinterpret_cast<std::byte*>(host_.counts)));
  const auto rows = static_cast<Bytes>(n_rows_);
  const Bytes rope_bytes = rows * 2 * static_cast<Bytes>(shape_.pairs) * sizeof(float);
  upload(host_.rope, rope_bytes);
  upload(host_.rope_block, rope_bytes);
}

void StepInputs::upload_kept() {
  upload(host_.kept, static_cast<Bytes>(n_seqs_) * sizeof(int32_t));
}

void StepInputs::upload(const void* first, Bytes n) {
  const StagedTable& source = copies_.front().table;
  const auto offset = static_cast<const std::byte*>(first) - source.on_host();
  for (const Copy& copy : copies_) {
    std::byte* const at = copy.table.on_host() + offset;
    if (at != first) std::memcpy(at, first, n);
    copy.table.upload(*copy.stream, at, n);
  }
}

}  // namespace strata::model
