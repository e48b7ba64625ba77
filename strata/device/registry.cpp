#include "strata/device/registry.h"

#include "strata/base/format.h"
#include "strata/device/host/host_device.h"

namespace strata::device {

std::vector<std::unique_ptr<Device>> make_devices(std::string_view list,
                                                  const DeviceOptions& options) {
  std::vector<std::unique_ptr<Device>> devices;
  devices.push_back(make_host_device(options));
  if (list != "host") {
    throw Error(ErrorCode::kInvalidArgument, format("no such device: {}", list));
  }
  return devices;
}

}  // namespace strata::device
