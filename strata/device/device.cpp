#include "strata/device/device.h"

#include <chrono>
#include <utility>

#include "strata/base/check.h"

namespace strata::device {

Device::Device(DeviceId id, Kind kind, std::string name, const DeviceOptions& options)
    : id_(id), kind_(kind), name_(std::move(name)), options_(options) {
  if (options.pool == nullptr) own_pool_ = std::make_unique<ThreadPool>(1);
  if (options.waits == nullptr) own_waits_ = std::make_unique<WaitRegistry>();
  if (options.trips == nullptr) own_trips_ = std::make_unique<Trips>();
  pool_ = options.pool != nullptr ? options.pool : own_pool_.get();
  waits_ = options.waits != nullptr ? options.waits : own_waits_.get();
  trips_ = options.trips != nullptr ? options.trips : own_trips_.get();
}

Device::~Device() { STRATA_CHECK(n_allocations_.load() == 0); }

StagingRing::StagingRing(Allocation memory, std::unique_ptr<Event> first,
                         std::unique_ptr<Event> second)
    : memory_(std::move(memory)) {
  const Bytes half = memory_.bytes() / 2;
  pieces_[0] = {memory_.view().part(0, half), std::move(first)};
  pieces_[1] = {memory_.view().part(half, half), std::move(second)};
}

bool StagingRing::wait(const Piece& piece) {
  constexpr std::chrono::minutes kLimit(1);
  return device::wait(*piece.done, {.who = "staging ring", .what = "a copy of pageable memory"},
                      Deadline::within(kLimit, piece.done->device().waits().clock()));
}

Try<StagingRing*> Device::ring() {
  if (ring_ == nullptr) {
    Try<Allocation> memory = allocate(ring_line_, kRingBytes, Mem::kPinned);
    if (const Fault* f = fault(memory)) return *f;
    ring_ = std::make_unique<StagingRing>(std::move(std::get<Allocation>(memory)), make_event(),
                                          make_event());
  }
  return ring_.get();
}

Try<Allocation> Device::allocate_staging(PlanLineId line, Bytes bytes) {
  const Mem mem = staging_memory();
  if (mem == Mem::kPageable) return allocate(line, bytes, mem);
  // First of all, as long as there is something to be had.
  if (ring_ == nullptr) static_cast<void>(ring());
  if (!trips_->on(Feature::kPinning, id_)) return allocate(line, bytes, Mem::kPageable);
  Try<Allocation> pinned = allocate(line, bytes, mem);
  const Fault* f = fault(pinned);
  if (f == nullptr || f->code == ErrorCode::kDeviceLost || ring_ == nullptr) return pinned;
  // What the plan refuses it refuses for pageable memory, too.
  Try<Allocation> pageable = allocate(line, bytes, Mem::kPageable);
  if (fault(pageable) == nullptr) trips_->trip(Feature::kPinning, id_, to_error(*f).what());
  return pageable;
}

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
