#include "strata/device/sim/sim_device.h"

#include <algorithm>
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
  SimDevice(DeviceId id, const SimCard& card, std::shared_ptr<SimOrder> order,
            const DeviceOptions& options)
      : Device(id, Kind::kSim, format("sim {} ({} MiB)", id.value, card.capacity >> 20), options),
        order_(std::move(order)),
        card_(card),
        faults_(id) {
    for (const FaultRule& rule : card.rules) faults_.add(rule);
    order_->add(*this);
  }
  ~SimDevice() override {
    drop_ring();
    order_->remove(*this);
  }

  SimFaults& faults() { return faults_; }
  const SimCard& card() const { return card_; }
  SimOrder& order() const { return *order_; }
  bool hangs_take_time() const { return options().hangs_take_time; }
  void spend_until(std::chrono::nanoseconds time) { time_ = std::max(time_, time); }
  std::chrono::nanoseconds time() const { return time_; }

  Capacity capacity() const override { return {.total = card_.capacity, .free = free()}; }
  Pinning pinning() const override {
    return {.possible = true, .limit = card_.pinned_limit.value_or(0)};
  }
  CardFacts facts() const override { return card_.facts; }
  bool reaches(const Device& other) const override {
    if (other.kind() != Kind::kSim) return false;
    const auto& sim = static_cast<const SimDevice&>(other);
    return sim.order_ == order_ && card_.peers && sim.card_.peers;
  }
  Bytes graph_bytes(size_t n_nodes) const override {
    return (n_nodes + 1) * card_.graph_node_bytes;
  }
  void started() override { faults_.start(); }

  std::unique_ptr<Stream> make_stream(std::string stream_name) override {
    return std::make_unique<SimStream>(*this, std::move(stream_name), *order_);
  }
  std::unique_ptr<Event> make_event() override {
    return std::make_unique<SimEvent>(*this, *order_);
  }

 private:
  // What is there for this process, less what it has.
  Bytes free() const {
    const Bytes others = std::max(card_.used_by_others, faults_.others());
    Bytes bytes = card_.capacity - std::min(card_.capacity, others);
    if (card_.facts.os_budget > 0) bytes = std::min(bytes, card_.facts.os_budget);
    return bytes - std::min(bytes, used_);
  }

  Try<std::byte*> do_allocate(Bytes bytes, Mem mem) override {
    const bool own = mem == Mem::kDevice, pinned = mem == Mem::kPinned || mem == Mem::kPinnedMapped;
    std::optional<Fault> fault = pass(FaultPoint::kAllocate, bytes);
    if (!fault && pinned) fault = pass(FaultPoint::kPin, bytes);
    if (fault) return *fault;
    Fault full{.code = ErrorCode::kResourceExhausted,
               .call = "allocate",
               .device = id(),
               .asked = bytes,
               .free = free()};
    if (pinned && card_.pinned_limit) {
      full.call = "pin";
      full.free = *card_.pinned_limit - std::min(*card_.pinned_limit, pinned_);
      if (bytes > full.free) return full;
    }
    std::byte* data = nullptr;
    if ((!own || bytes <= full.free) && bytes <= SIZE_MAX / 2) data = take(bytes, mem);
    if (data == nullptr) return full;
    if (own) used_ += bytes;
    if (pinned) pinned_ += bytes;
    // A card does not know pageable memory, even if it was asked for here.
    if (mem != Mem::kPageable) order_->add_memory({.data = data, .bytes = bytes, .mem = mem});
    return data;
  }

  std::optional<Fault> pass(FaultPoint point, Bytes bytes) {
    std::optional<Fault> fault = faults_.pass(point, {.bytes = bytes, .free = free()}).fault;
    if (fault && faults_.lost()) order_->skip_work_of(*this);
    return fault;
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
    if (view.mem != Mem::kPageable) pinned_ -= view.bytes;
    std::memset(view.data, kPoison, static_cast<size_t>(view.bytes));
    ::operator delete(view.data, kAlign);
  }

  const std::shared_ptr<SimOrder> order_;  // owned by the sims of one machine together
  const SimCard card_;
  Bytes used_ = 0, pinned_ = 0;
  std::chrono::nanoseconds time_{0};
  SimFaults faults_;
};

}  // namespace

std::unique_ptr<Device> make_sim_device(DeviceId id, const SimCard& card,
                                        std::shared_ptr<SimOrder> order,
                                        const DeviceOptions& options) {
  STRATA_CHECK(id != kHostId && order != nullptr);
  return std::make_unique<SimDevice>(id, card, std::move(order), options);
}

SimFaults& faults_of(Device& sim) {
  STRATA_CHECK(sim.kind() == Kind::kSim);
  return static_cast<SimDevice&>(sim).faults();
}

const SimCard& card_of(const Device& sim) { return static_cast<const SimDevice&>(sim).card(); }
bool hangs_take_time(const Device& sim) {
  return static_cast<const SimDevice&>(sim).hangs_take_time();
}
void spend_until(Device& sim, std::chrono::nanoseconds time) {
  static_cast<SimDevice&>(sim).spend_until(time);
}

std::chrono::nanoseconds sim_time(const Device& sim) {
  STRATA_CHECK(sim.kind() == Kind::kSim);
  return static_cast<const SimDevice&>(sim).time();
}

std::shared_ptr<SimOrder> make_sim_order(uint64_t seed) { return std::make_shared<SimOrder>(seed); }

}  // namespace strata::device
