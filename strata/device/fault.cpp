#include "strata/device/fault.h"

#include "strata/base/format.h"

namespace strata::device {

Error to_error(const Fault& fault) {
  std::string text = format("{} failed on device {}", fault.call, fault.device.value);
  text += fault.api_code != 0 ? format(" ({}, code {})", name(fault.code), fault.api_code)
                              : format(" ({})", name(fault.code));
  if (fault.asked != 0) text += format(": {} bytes asked, {} free", fault.asked, fault.free);
  return Error(fault.code, std::move(text));
}

}  // namespace strata::device
