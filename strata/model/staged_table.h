#pragma once

#include <cstddef>
#include <string>

#include "strata/device/device.h"
#include "strata/device/stream.h"
#include "strata/memory/plan.h"

namespace strata::model {

// A table that the host fills and queued work reads, or the other way round: the same bytes twice,
// in staging and in work memory of a device, laid out alike.
class StagedTable {
 public:
  // Adds a line for each, that of the staging memory as "name (host)". The device outlives this.
  StagedTable(device::Device& device, memory::Plan& plan, const std::string& name,
              const std::string& formula, Bytes bytes);
  // Errors: kResourceExhausted.
  void allocate();

  // Null before.
  std::byte* on_host() const { return host_.data(); }
  std::byte* on_device() const { return work_.data(); }
  Bytes bytes() const { return bytes_; }

  // Queues a copy of n bytes, `first` being an address in the host's table. These bytes must stay
  // as they are until it has run. Errors: those of Stream::copy.
  void upload(device::Stream& stream, const void* first, Bytes n) const;
  void download(device::Stream& stream, const void* first, Bytes n) const;

 private:
  Bytes offset(const void* first) const;

  device::Device& device_;
  Bytes bytes_;
  PlanLineId host_line_, work_line_;
  device::Allocation host_, work_;
};

}  // namespace strata::model
