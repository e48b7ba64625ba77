#include "strata/device/device.h"

#include "strata/base/check.h"

namespace strata::device {

Device::Device(DeviceId id, Kind kind, std::string name, const DeviceOptions& options)
    : id_(id), kind_(kind), name_(std::move(name)), options_(options) {
  if (options.pool == nullptr) own_pool_ = std::make_unique<ThreadPool>(1);
  if (options.waits == nullptr) own_waits_ = std::make_unique<WaitRegistry>();
  pool_ = options.pool != nullptr ? options.pool : own_pool_.get();
  waits_ = options.waits != nullptr ? options.waits : own_waits_.get();
}

Device::~Device() { STRATA_CHECK(n_allocations_.load() == 0); }

Try<Allocation> Device::allocate(PlanLineId line, Bytes bytes, Mem mem) {
  const DeviceId where = mem == Mem::kDevice ? id_ : kHostId;
  if (options_.gate != nullptr && !options_.gate->admit(where, line, bytes)) {
    return Fault{.code = ErrorCode::kResourceExhausted,
                 .call = "admit",
                 .device = where,
                 .asked = bytes,
                 .free = capacity().free};
  }
  Try<std::byte*> got = do_allocate(bytes, mem);
  if (const Fault* f = fault(got)) {
    if (options_.gate != nullptr) options_.gate->released(where, line, bytes);
    return *f;
  }
  allocated_.fetch_add(bytes, std::memory_order_relaxed);
  n_allocations_.fetch_add(1, std::memory_order_relaxed);
  const MemView view{
      .data = std::get<std::byte*>(got), .bytes = bytes, .mem = mem, .device = where};
  return Allocation(*this, view, line);
}

void Device::free(const Allocation& allocation) noexcept {
  do_free(allocation.view_);
  allocated_.fetch_sub(allocation.bytes(), std::memory_order_relaxed);
  n_allocations_.fetch_sub(1, std::memory_order_relaxed);
  if (options_.gate != nullptr) {
    options_.gate->released(allocation.view_.device, allocation.line_, allocation.bytes());
  }
}

}  // namespace strata::device
