#include "strata/device/memory.h"

#include "strata/device/device.h"

namespace strata::device {

const char* name(Mem mem) {
  switch (mem) {
    case Mem::kDevice:
      return "device";
    case Mem::kPinnedMapped:
      return "pinned+mapped";
    case Mem::kPinned:
      return "pinned";
    case Mem::kPageable:
      return "pageable";
  }
  return "?";
}

MemView MemView::part(Bytes offset, Bytes n) const {
  STRATA_CHECK(offset <= bytes && n <= bytes - offset);
  return {.data = data + offset, .bytes = n, .mem = mem, .device = device};
}

Allocation::~Allocation() {
  if (device_ != nullptr) device_->free(*this);
}

}  // namespace strata::device
