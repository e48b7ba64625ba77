#include "strata/model/host_copy.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "strata/base/error.h"
#include "strata/base/format.h"

namespace strata::model {
namespace {

// Enough that a link is busy with it, and little beside everything else.
constexpr Bytes kPiece = Bytes{256} << 10;
constexpr std::chrono::minutes kLimit(1);

void wait(device::Stream& stream) {
  const device::WaitRegistry& waits = stream.device().waits();
  const Clock::TimePoint begun = waits.clock().now();
  if (stream.drain({"model", "a copy to or from the host"}, kLimit)) return;
  throw Error(ErrorCode::kDevice,
              format("a copy between host and device did not end {}", waits.late_text(begun)));
}

}  // namespace

HostCopy::HostCopy(device::Device& device, memory::Plan& plan) : device_(device) {
  line_ = plan.add({.owner = "model",
                    .name = "copies to the host",
                    .formula = format("pieces of {} B", kPiece),
                    .where = device::kHostId,
                    .bytes = kPiece});
  if (device.reads_host_memory()) return;
  device.set_ring_line(plan.add({.owner = "model",
                                 .name = "staging ring",
                                 .formula = "for copies of memory that could not be pinned",
                                 .where = device::kHostId,
                                 .bytes = device::Device::kRingBytes}));
}

void HostCopy::allocate() { staging_ = value_or_throw(device_.allocate_staging(line_, kPiece)); }

device::MemView HostCopy::on_device(const std::byte* data, Bytes bytes) const {
  // A view is of bytes that may be written, even where they are only read.
  return {.data = const_cast<std::byte*>(data),
          .bytes = bytes,
          .mem = device_.work_memory(),
          .device = device_.id()};
}

void HostCopy::read(device::Stream& stream, const void* from, std::span<std::byte> to) {
  const auto* const begin = static_cast<const std::byte*>(from);
  for (Bytes at = 0; at < to.size(); at += kPiece) {
    const device::MemView piece = staging_.view().part(0, std::min<Bytes>(kPiece, to.size() - at));
    value_or_throw(stream.copy(piece, on_device(begin + at, piece.bytes)));
    wait(stream);
    std::memcpy(to.data() + at, piece.data, piece.bytes);
  }
}

void HostCopy::write(device::Stream& stream, void* to, std::span<const std::byte> from) {
  const auto* const begin = static_cast<const std::byte*>(to);
  for (Bytes at = 0; at < from.size(); at += kPiece) {
    const device::MemView piece =
        staging_.view().part(0, std::min<Bytes>(kPiece, from.size() - at));
    std::memcpy(piece.data, from.data() + at, piece.bytes);
    value_or_throw(stream.copy(on_device(begin + at, piece.bytes), piece));
    wait(stream);
  }
}

}  // namespace strata::model
