#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "strata/base/view.h"
#include "strata/device/device.h"
#include "strata/device/stream.h"
#include "strata/memory/plan.h"

namespace strata::model {

// Brings bytes from the device's memory to the host and back, in pieces, through a little staging
// memory of the plan. Waits for the stream: for checkpoints, evaluation, observers and tests, not
// for steps.
//
// Of both calls, errors: kDevice, also if the stream takes longer than a minute for a piece;
// kDeviceLost; what the queued work threw. What was to be written is undefined then.
class HostCopy {
 public:
  // Adds the line of the staging memory, and that of the device's ring.
  HostCopy(device::Device& device, memory::Plan& plan);
  void allocate();

  // The bytes at `from` as of all work queued so far.
  void read(device::Stream& stream, const void* from, std::span<std::byte> to);
  template <class T>
  void read(device::Stream& stream, const T* from, std::span<T> to) {
    read(stream, static_cast<const void*>(from), std::as_writable_bytes(to));
  }
  template <class T>
  std::vector<T> read(device::Stream& stream, const T* from, int64_t n) {
    std::vector<T> to(static_cast<size_t>(n));
    read(stream, from, std::span(to));
    return to;
  }
  // Behind all work queued so far.
  void write(device::Stream& stream, void* to, std::span<const std::byte> from);

 private:
  device::MemView on_device(const std::byte* data, Bytes bytes) const;

  device::Device& device_;
  PlanLineId line_;
  device::Allocation staging_;
};

}  // namespace strata::model
