#include "strata/device/host/host_device.h"

#include <new>
#include <string>

#include "strata/base/os/memory.h"
#include "strata/device/host/host_stream.h"

namespace strata::device {
namespace {

constexpr std::align_val_t kAlign{256};

class HostEvent final : public Event {
 public:
  explicit HostEvent(Device& device) : Event(device) {}
  bool done() const override { return true; }

 private:
  bool wait_until(Clock::TimePoint, const Clock&) const override { return true; }
};

class HostDevice final : public Device {
 public:
  explicit HostDevice(const DeviceOptions& options)
      : Device(kHostId, Kind::kHost, "host", options) {}

  Capacity capacity() const override {
    const os::MemoryBudget budget = os::memory_budget();
    return {.total = budget.total, .free = budget.available};
  }
  Pinning pinning() const override { return {}; }

  std::unique_ptr<Stream> make_stream(std::string name) override {
    return make_host_stream(*this, std::move(name));
  }
  std::unique_ptr<Event> make_event() override { return std::make_unique<HostEvent>(*this); }

 private:
  Try<std::byte*> do_allocate(Bytes bytes, Mem) override {
    // What is more than the machine has would be granted and then page: that is no memory.
    void* data = total_ == 0 || bytes <= total_
                     ? ::operator new(static_cast<size_t>(bytes), kAlign, std::nothrow)
                     : nullptr;
    if (data != nullptr) return static_cast<std::byte*>(data);
    return Fault{.code = ErrorCode::kResourceExhausted,
                 .call = "allocate",
                 .device = id(),
                 .asked = bytes,
                 .free = capacity().free};
  }
  void do_free(const MemView& view) noexcept override { ::operator delete(view.data, kAlign); }

  const Bytes total_ = os::memory_budget().total;  // 0: unknown
};

}  // namespace

std::unique_ptr<Device> make_host_device(const DeviceOptions& options) {
  return std::make_unique<HostDevice>(options);
}

}  // namespace strata::device
