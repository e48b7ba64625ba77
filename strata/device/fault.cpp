#include "strata/device/fault.h"

#include "strata/base/format.h"

namespace strata::device {

Error to_error(const Fault& fault) {
  std::string text = format("{} failed on device {}", fault.call, fault.device.value);
  if (fault.api_code != 0) text += format(" (code {})", fault.api_code);
  if (fault.asked != 0) text += format(": {} bytes asked, {} free", fault.asked, fault.free);
  return Error(fault.code, std::move(text));
}

}  // namespace strata::device
