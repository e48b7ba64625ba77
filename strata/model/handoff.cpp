#include "strata/model/handoff.h"

#include "strata/base/check.h"
#include "strata/base/format.h"

namespace strata::model {
namespace {

// A host stage has nothing to pin memory with; the card beside it does.
device::Device& who_pins(const Stage& from, const Stage& to) {
  return from.is_host() ? *to.device : *from.device;
}

}  // namespace

Handoff::Handoff(const Stage& from, const Stage& to, Bytes bytes, memory::Plan& plan)
    : from_(from), to_(to), bytes_(bytes) {
  line_ =
      plan.add({.owner = "model",
                .name = "hand-off",
                .formula = format("residual from {} to {}", from.device->name(), to.device->name()),
                .where = device::kHostId,
                .bytes = bytes});
}

void Handoff::allocate() {
  device::Device& device = who_pins(from_, to_);
  between_ = value_or_throw(device.allocate_staging(line_, bytes_));
  sent_ = from_.device->make_event();
}

bool Handoff::goes_directly() const {
  return to_.device->reaches(*from_.device) &&
         to_.device->trips().on(device::Feature::kPeerCopies, to_.device->id());
}

void Handoff::send(void* to, const void* from, Bytes bytes) {
  if (!goes_directly()) return send_through_host(to, from, bytes);
  from_.stream->record(*sent_);
  to_.stream->wait(*sent_);
  to_.stream->set_place({"the hand-off from device", from_.device->id().value});
  const device::Try<device::Done> copied =
      to_.stream->copy(to_.at(to, bytes), from_.at(const_cast<void*>(from), bytes));
  const device::Fault* fault = device::fault(copied);
  if (fault == nullptr) return;
  if (fault->code == ErrorCode::kDeviceLost) throw to_error(*fault);
  to_.device->trips().trip(device::Feature::kPeerCopies, to_.device->id(),
                           format("hand-off from {} to {}: {}", from_.device->name(),
                                  to_.device->name(), to_error(*fault).what()));
  send_through_host(to, from, bytes);
}

void Handoff::send_through_host(void* to, const void* from, Bytes bytes) {
  STRATA_CHECK(bytes <= bytes_);
  const device::MemView between = between_.view().part(0, bytes);
  from_.stream->set_place({"the hand-off to device", to_.device->id().value});
  to_.stream->set_place({"the hand-off from device", from_.device->id().value});
  value_or_throw(from_.stream->copy(between, from_.at(const_cast<void*>(from), bytes)));
  from_.stream->record(*sent_);
  to_.stream->wait(*sent_);
  value_or_throw(to_.stream->copy(to_.at(to, bytes), between));
}

}  // namespace strata::model
