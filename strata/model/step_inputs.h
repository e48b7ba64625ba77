#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strata/device/device.h"
#include "strata/device/stream.h"
#include "strata/kernels/ops/rows.h"
#include "strata/memory/plan.h"
#include "strata/model/rope.h"
#include "strata/model/stage.h"
#include "strata/model/staged_table.h"

namespace strata::model {

// The largest step: the shape class that buffers and graphs are made for.
struct StepShape {
  int max_rows = 0;  // tokens of all sequences
  int max_seqs = 0;  // sequences
  int max_out = 0;   // rows whose logits are wanted
  int slots = 0;
  int pages_per_slot = 0;
  int streams = 0;   // of the residual
  int pairs = 0;     // of the rotary embedding
  int ple_rows = 0;  // table rows a token reads; 0: none
};

// The new tokens of one slot in a step.
struct Sequence {
  int slot = 0;
  int first_index = 0;  // of the first token within the session
  std::span<const int32_t> ids;
  std::span<const Rope::Position> positions;        // one a token
  std::span<const Rope::Position> block_positions;  // of the first token of each token's block
  std::span<const int64_t> ple_rows;                // [ids, StepShape::ple_rows]
};

// What changes from step to step, written on the host once and copied to the device of each stage,
// where kernels::Rows points at it. begin, add.., then upload; the host copies must stay as they
// are until the copies have run.
class StepInputs {
 public:
  StepInputs(const StepShape& shape, std::span<const Stage> stages, memory::Plan& plan);
  void allocate();

  void begin();
  void add(const Sequence& sequence, const Rope& rope);
  // The rows (of all sequences together) whose logits the head computes.
  void set_outputs(std::span<const int32_t> rows);
  void set_pages(int slot, std::span<const int32_t> pages);
  void set_side(int slot, int side);
  // For the draft layer: the row of the residual that each row takes, if not its own.
  void set_sources(std::span<const int32_t> rows);
  // For a commit: rows kept of each sequence, -1 = all or none (then no replay is needed).
  void set_kept(int sequence, int kept);
  // Queues the copies, on the stream of each stage.
  void upload();
  // Of set_kept alone, behind a step that has run.
  void upload_kept();

  int n_rows() const { return n_rows_; }
  int n_seqs() const { return n_seqs_; }
  int n_out() const { return n_out_; }
  const StepShape& shape() const { return shape_; }

  // Views of the memory of a stage's device.
  const kernels::Rows& rows(size_t stage) const { return copies_[stage].rows; }
  const int32_t* kept(size_t stage) const { return copies_[stage].at.kept; }
  // Of the last stage's.
  const int32_t* out_index() const { return copies_.back().at.out_index; }
  const int32_t* source() const { return copies_.back().at.source; }
  const int32_t* n_out_rows() const { return copies_.back().at.counts + 2; }
  const int32_t* n_stream_rows() const { return copies_.back().at.counts + 3; }  // rows x streams
  // Of the host's: for what the host looks up.
  const int32_t* host_n_rows() const { return host_.counts; }
  const int32_t* host_ids() const { return host_.id; }
  const int64_t* host_ple_rows() const { return host_.ple_rows; }

 private:
  struct Arrays {
    int32_t* counts;  // rows, sequences, outputs, rows times streams
    int32_t *id, *slot, *index, *seq_slot, *seq_first, *seq_rows, *side, *pages, *out_index, *kept,
        *source;
    float *rope, *rope_block;
    int64_t* ple_rows;
  };
  Arrays carve(std::byte* base, Bytes* bytes) const;
  Bytes table_bytes() const;

  // What one stage has.
  struct Copy {
    device::Stream* stream;
    StagedTable table;
    Arrays at{};  // on the device
    kernels::Rows rows;
  };
  void upload(const void* first, Bytes n);

  StepShape shape_;
  std::vector<Copy> copies_;
  Arrays host_{};  // of the first copy's table; the others' are filled from it
  int n_rows_ = 0, n_seqs_ = 0, n_out_ = 0;
};

}  // namespace strata::model
