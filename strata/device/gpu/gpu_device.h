#pragma once

#include <memory>
#include <vector>

#include "strata/device/device.h"

namespace strata::device {

// How many cards the runtime sees. Errors: kUnsupported with the reason if it cannot be asked: this
// build has none, there is no driver, or one too old.
int n_gpus(const char* api);

// Card `ordinal` of the runtime, as it counts them. api: "cuda" or "hip". Its streams launch what a
// body launches on gpu::native(stream); bodies run at once, on the calling thread, and only queue.
// Errors: as n_gpus; kInvalidArgument if there is no such card; kDevice.
std::unique_ptr<Device> make_gpu_device(const char* api, DeviceId id, int ordinal,
                                        const DeviceOptions& options);

// Lets the cards of one list copy from each other directly, where the machine can; copies between
// the others go through the host. Devices of other kinds are passed over.
void link_gpus(const std::vector<std::unique_ptr<Device>>& devices);

}  // namespace strata::device
