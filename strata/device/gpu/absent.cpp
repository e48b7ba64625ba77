#include "strata/base/format.h"
#include "strata/device/gpu/gpu_device.h"

// In the place of gpu_device.cpp where no runtime of cards is built in.
namespace strata::device {

int n_gpus(const char* api) {
  throw Error(ErrorCode::kUnsupported,
              format("this build has no cards of {}; it is made without its compiler", api));
}

std::unique_ptr<Device> make_gpu_device(const char* api, DeviceId, int, const DeviceOptions&) {
  n_gpus(api);
  return nullptr;
}

void link_gpus(const std::vector<std::unique_ptr<Device>>&) {}

}  // namespace strata::device
