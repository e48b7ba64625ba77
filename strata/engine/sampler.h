#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "strata/device/stream.h"
#include "strata/engine/request.h"
#include "strata/kernels/ops/sample.h"
#include "strata/memory/plan.h"
#include "strata/model/staged_table.h"

namespace strata::engine {

// The row tables of the sampling op: filled on the host for each step, copied to the device, and
// the chosen ids copied back. A row is a token of some request: the next one, or one behind
// guesses.
class Sampler {
 public:
  // For steps on this stream, whose device outlives this.
  // Errors: kUnsupported if the device cannot sample.
  Sampler(int max_rows, int64_t max_context, int n_vocab, const device::Stream& stream,
          memory::Plan& plan);
  void allocate();

  void begin();
  // The next row samples the token that comes after the answer so far and `ahead`, guesses that
  // count as answer.
  // n_top: log probabilities are wanted, with so many alternatives; -1: none.
  // No token comes that the request's guide does not allow.
  void add(Request& request, std::span<const int32_t> ahead, int n_top);
  // Queues copy, op and copy back on logits [max_rows, vocab]. chosen() is valid when the stream
  // has done it.
  void run(device::Stream& stream, View<float> logits, const int32_t* n_rows);
  std::span<const int32_t> chosen() const;
  // Of each row; valid where it was asked for.
  std::span<const kernels::RowLogprobs> logprobs() const;

  // Masks made so far, and the time of that. Any thread.
  uint64_t n_masks() const { return n_masks_made_; }
  uint64_t mask_ns() const { return mask_ns_; }

 private:
  struct Arrays {
    kernels::SampleParams* params;
    int32_t* chosen;
    kernels::TokenBias* biases;
    kernels::TokenCount* counts;
    kernels::RowLogprobs* logprobs;
    uint64_t* masks;
  };
  Arrays carve(std::byte* base, Bytes* bytes) const;
  Bytes table_bytes() const;
  int32_t add_mask(const Request& request, std::span<const int32_t> ahead);
  kernels::SampleRows arguments(View<float> logits, const int32_t* n_rows) const;

  int max_rows_;
  int64_t max_counts_, max_biases_, n_words_;
  device::Device& device_;
  model::StagedTable table_;
  PlanLineId scratch_line_;
  Bytes scratch_bytes_ = 0;
  device::Allocation scratch_;
  Arrays host_{}, on_device_{};
  int n_rows_ = 0;
  bool any_logprobs_ = false;
  int32_t n_counts_ = 0, n_biases_ = 0, n_masks_ = 0;
  std::atomic<uint64_t> n_masks_made_{0}, mask_ns_{0};
};

}  // namespace strata::engine
