#pragma once

#include <memory>

#include "strata/device/device.h"

namespace strata::device {

// The CPU and its memory, as a device. Work runs at once on the calling thread, which shares it
// with the pool; events are done as soon as they are recorded. Every Mem is the same memory.
std::unique_ptr<Device> make_host_device(const DeviceOptions& options);

}  // namespace strata::device
