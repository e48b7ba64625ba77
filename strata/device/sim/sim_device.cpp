#include "strata/device/sim/sim_device.h"

#include <cstring>
#include <new>
#include <optional>
#include <string>

#include "strata/base/check.h"
#include "strata/base/format.h"
#include "strata/device/sim/sim_faults.h"
#include "strata/device/sim/sim_order.h"
#include "strata/device/sim/sim_stream.h"

namespace strata::device {
namespace {

constexpr std::align_val_t kAlign{256};
// As a float of any width a NaN, as an index -1.
constexpr int kPoison = 0xff;

class SimDevice final : public Device {
 public:
  SimDevice(DeviceId id, Bytes capacity_bytes, std::shared_ptr<SimOrder> order,
            const DeviceOptions& options)
      : Device(id, Kind::kSim, format("sim {} ({} MiB)", id.value, capacity_bytes >> 20), options),
        order_(std::move(order)),
        capacity_(capacity_bytes),
        faults_(id) {}

  SimFaults& faults() { return faults_; }

  Capacity capacity() const override { return {.total = capacity_, .free = capacity_ - used_}; }
  Pinning pinning() const override { return {.possible = true, .limit = 0}; }

  std::unique_ptr<Stream> make_stream(std::string stream_name) override {
    return std::make_unique<SimStream>(*this, std::move(stream_name), *order_);
  }
  std::unique_ptr<Event> make_event() override {
    return std::make_unique<SimEvent>(*this, *order_);
  }

 private:
  Try<std::byte*> do_allocate(Bytes bytes, Mem mem) override {
    if (std::optional<Fault> fault = faults_.pass(FaultPoint::kAllocate)) {
      if (faults_.lost()) order_->skip_work_of(*this);
      fault->asked = bytes;
      fault->free = capacity_ - used_;
      return *fault;
    }
    const Bytes own = mem == Mem::kDevice ? bytes : 0;
    std::byte* data = nullptr;
    if (own <= capacity_ - used_ && bytes <= SIZE_MAX / 2) data = take(bytes, mem);
    if (data == nullptr) {
      return Fault{.code = ErrorCode::kResourceExhausted,
                   .call = "allocate",
                   .device = id(),
                   .asked = bytes,
                   .free = capacity_ - used_};
    }
    used_ += own;
    // A card does not know pageable memory, even if it was asked for here.
    if (mem != Mem::kPageable) order_->add_memory({.data = data, .bytes = bytes, .mem = mem});
    return data;
  }

  std::byte* take(Bytes bytes, Mem mem) {
    if (mem == Mem::kDevice) return order_->take_pages(bytes, kPoison);
    void* const data = ::operator new(static_cast<size_t>(bytes), kAlign, std::nothrow);
    if (data != nullptr) std::memset(data, kPoison, static_cast<size_t>(bytes));
    return static_cast<std::byte*>(data);
  }

  void do_free(const MemView& view) noexcept override {
    order_->check_unused(view);
    order_->remove_memory(view);
    if (view.mem == Mem::kDevice) {
      order_->give_pages(view.data);
      used_ -= view.bytes;
      return;
    }
    std::memset(view.data, kPoison, static_cast<size_t>(view.bytes));
    ::operator delete(view.data, kAlign);
  }

  const std::shared_ptr<SimOrder> order_;  // owned by the sims of one machine together
  const Bytes capacity_;
  Bytes used_ = 0;
  SimFaults faults_;
};

}  // namespace

std::unique_ptr<Device> make_sim_device(DeviceId id, Bytes capacity_bytes,
                                        std::shared_ptr<SimOrder> order,
                                        const DeviceOptions& options) {
  STRATA_CHECK(id != kHostId && order != nullptr);
  return std::make_unique<SimDevice>(id, capacity_bytes, std::move(order), options);
}

SimFaults& faults_of(Device& sim) {
  STRATA_CHECK(sim.kind() == Kind::kSim);
  return static_cast<SimDevice&>(sim).faults();
}

std::shared_ptr<SimOrder> make_sim_order(uint64_t seed) { return std::make_shared<SimOrder>(seed); }

}  // namespace strata::device
