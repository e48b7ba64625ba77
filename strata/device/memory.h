#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "strata/base/ids.h"
#include "strata/base/view.h"
#include "strata/device/fault.h"

namespace strata::device {

class Device;

// Where memory lies and who may touch it.
enum class Mem : uint8_t {
  kDevice,        // the device's own
  kPinnedMapped,  // the host's; the device reads and writes it through the link
  kPinned,        // the host's; the device copies from and to it
  kPageable,      // the host's; a card may not touch it
};
const char* name(Mem mem);

// The host's own memory carries this id, whichever device asked for it. Cards count from 1.
inline constexpr DeviceId kHostId{0};

// A stretch of bytes that says where it lies. Never owns.
struct MemView {
  std::byte* data = nullptr;
  Bytes bytes = 0;
  Mem mem = Mem::kPageable;
  DeviceId device = kHostId;  // where the bytes lie

  MemView part(Bytes offset, Bytes n) const;  // checked
};

// Installed by the ledger. Asked before each allocation, with the device where the bytes will lie;
// told after each free. May be called from any thread that allocates.
class AllocationGate {
 public:
  virtual ~AllocationGate() = default;
  virtual bool admit(DeviceId where, PlanLineId line, Bytes bytes) = 0;
  virtual void released(DeviceId where, PlanLineId line, Bytes bytes) = 0;
};

// Owns memory of one plan line. The device must outlive it. Queued work that uses it must be done
// before it is destroyed (sim aborts if it is not). Contents are undefined at first.
class Allocation {
 public:
  Allocation() = default;
  Allocation(Allocation&& other) noexcept { swap(other); }
  Allocation& operator=(Allocation&& other) noexcept {
    Allocation(std::move(other)).swap(*this);
    return *this;
  }
  ~Allocation();

  std::byte* data() const { return view_.data; }
  Bytes bytes() const { return view_.bytes; }
  PlanLineId line() const { return line_; }
  const MemView& view() const { return view_; }
  // The first bytes as an array; checked against the size.
  template <class T>
  View<T> as(std::initializer_list<int64_t> shape) const {
    View<T> view(reinterpret_cast<T*>(view_.data), shape);
    STRATA_CHECK(static_cast<Bytes>(view.size()) <= view_.bytes / sizeof(T));
    return view;
  }
  explicit operator bool() const { return view_.data != nullptr; }

 private:
  friend class Device;
  Allocation(Device& device, const MemView& view, PlanLineId line)
      : device_(&device), view_(view), line_(line) {}
  void swap(Allocation& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(view_, other.view_);
    std::swap(line_, other.line_);
  }

  Device* device_ = nullptr;
  MemView view_;
  PlanLineId line_;
};

}  // namespace strata::device
