#pragma once

#include <span>
#include <vector>

#include "strata/device/device.h"
#include "strata/engine/request.h"
#include "strata/kernels/ops/sample.h"
#include "strata/memory/plan.h"

namespace strata::engine {

// The row tables of the sampling op: filled on the host for each step, copied to the device, and
// the chosen ids copied back.
class Sampler {
 public:
  Sampler(int max_rows, int64_t max_context, device::Device& device, memory::Plan& plan);
  void allocate();

  void begin();
  // The next row samples the next token of this request.
  void add(const Request& request);
  // Queues copy, op and copy back on logits [max_rows, vocab]. chosen() is valid when the stream
  // has done it.
  void run(device::Stream& stream, View<float> logits, const int32_t* n_rows);
  std::span<const int32_t> chosen() const;

 private:
  struct Arrays {
    kernels::SampleParams* params;
    int32_t* chosen;
    kernels::TokenBias* biases;
    kernels::TokenCount* counts;
  };
  Arrays carve(std::byte* base, Bytes* bytes) const;

  int max_rows_;
  int64_t max_counts_, max_biases_;
  device::Device& device_;
  PlanLineId host_line_, device_line_;
  device::Allocation host_memory_, device_memory_;
  Arrays host_{}, on_device_{};
  int n_rows_ = 0;
  int32_t n_counts_ = 0, n_biases_ = 0;
};

}  // namespace strata::engine
