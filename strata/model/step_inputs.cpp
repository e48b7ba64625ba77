#include "strata/model/step_inputs.h"

#include <algorithm>

#include "strata/base/carver.h"
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

StepInputs::StepInputs(const StepShape& shape, device::Device& device, memory::Plan& plan)
    : shape_(shape),
      table_(device, plan, "step inputs",
             format("{} rows, {} sequences", shape.max_rows, shape.max_seqs), table_bytes()) {}

void StepInputs::allocate() {
  table_.allocate();
  Bytes bytes = 0;
  host_ = carve(table_.on_host(), &bytes);
  device_ = carve(table_.on_device(), &bytes);
  std::fill_n(table_.on_host(), bytes, std::byte{0});
  std::fill_n(host_.pages, int64_t{shape_.slots} * shape_.pages_per_slot, -1);
  rows_ = {.n_rows = device_.counts,
           .n_seqs = device_.counts + 1,
           .id = device_.id,
           .slot = device_.slot,
           .index = device_.index,
           .seq_slot = device_.seq_slot,
           .seq_first = device_.seq_first,
           .seq_rows = device_.seq_rows,
           .side = device_.side,
           .pages = device_.pages,
           .rope = device_.rope,
           .rope_block = device_.rope_block,
           .pages_per_slot = shape_.pages_per_slot,
           .max_rows = shape_.max_rows,
           .max_seqs = shape_.max_seqs};
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

void StepInputs::set_pages(int slot, std::span<const int32_t> pages) {
  int32_t* row = host_.pages + int64_t{slot} * shape_.pages_per_slot;
  std::fill_n(row, shape_.pages_per_slot, -1);
  std::copy(pages.begin(), pages.end(), row);
}

void StepInputs::set_side(int slot, int side) { host_.side[slot] = side; }

void StepInputs::set_kept(int sequence, int kept) { host_.kept[sequence] = kept; }

void StepInputs::upload(device::Stream& stream) {
  // The arrays before rope are small; of the long ones only the rows in use.
  table_.upload(stream, host_.counts,
                static_cast<size_t>(reinterpret_cast<std::byte*>(host_.rope) -
                                    reinterpret_cast<std::byte*>(host_.counts)));
  const size_t rows = static_cast<size_t>(n_rows_);
  const size_t rope_bytes = rows * 2 * static_cast<size_t>(shape_.pairs) * sizeof(float);
  table_.upload(stream, host_.rope, rope_bytes);
  table_.upload(stream, host_.rope_block, rope_bytes);
  table_.upload(stream, host_.ple_rows,
                rows * static_cast<size_t>(shape_.ple_rows) * sizeof(int64_t));
}

}  // namespace strata::model
