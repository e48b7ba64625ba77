#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "strata/device/device.h"
#include "strata/device/stream.h"
#include "strata/gguf/model.h"
#include "strata/kernels/ops/rows.h"
#include "strata/memory/plan.h"

namespace strata::model {

// Brings tensors from the file to a device in pieces, all threads of its pool at work, so that
// loading takes no second copy of the model: a few MiB of staging, and no page of a mapped file,
// since it is read through its descriptor (which is also twice as fast as touching its pages).
class WeightCopier {
 public:
  // Adds the line of the staging memory. largest_tile: bytes of the largest tile that will come.
  static PlanLineId declare(memory::Plan& plan, const device::Device& device, Bytes largest_tile);

  // Errors: kResourceExhausted.
  WeightCopier(const gguf::Model& file, device::Device& device, PlanLineId staging_line,
               Bytes largest_tile);

  // Copies a tensor, into tiles if asked to. to: as many bytes as the tensor has. advanced(n): n
  // more bytes are there; called by this thread. Errors: kIo, kDevice.
  void copy(const gguf::Tensor& tensor, kernels::Packing packing, const device::MemView& to,
            const std::function<void(Bytes)>& advanced);
  // Copies bytes of host memory. Errors: kDevice.
  void put(std::span<const std::byte> bytes, const device::MemView& to);

 private:
  // Reads bytes [begin, begin + out.size()) of the tensor into out, in tiles if asked to.
  void read(const gguf::Tensor& tensor, kernels::Packing packing, Bytes begin,
            std::span<std::byte> out);
  void send(const device::MemView& to);

  const gguf::Model& file_;
  device::Device& device_;
  Bytes piece_;                        // what a thread reads at once
  device::Allocation raw_, outgoing_;  // a piece a thread; what is copied to a card
  std::unique_ptr<device::Stream> stream_;
};

}  // namespace strata::model
