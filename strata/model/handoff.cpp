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
  between_ = value_or_throw(device.allocate(line_, bytes_, device.staging_memory()));
  sent_ = from_.device->make_event();
}

void Handoff::send(void* to, const void* from, Bytes bytes) {
  STRATA_CHECK(bytes <= bytes_);
  const device::MemView between = between_.view().part(0, bytes);
  value_or_throw(from_.stream->copy(between, from_.at(const_cast<void*>(from), bytes)));
  from_.stream->record(*sent_);
  to_.stream->wait(*sent_);
  value_or_throw(to_.stream->copy(to_.at(to, bytes), between));
}

}  // namespace strata::model
