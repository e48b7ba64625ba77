#include "strata/model/weight_copier.h"

#include <algorithm>
#include <cstring>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/quant/tiles.h"

namespace strata::model {
namespace {

// Large enough that a disk reads it in one go, small enough that it stays in the cache between the
// read and the re-laying.
constexpr Bytes kPiece = Bytes{512} << 10;
// Progress is told after each; a card gets it in one copy.
constexpr Bytes kHostBatch = Bytes{64} << 20, kCardBatch = Bytes{4} << 20;

Bytes piece_bytes(Bytes largest_tile) { return std::max(kPiece, largest_tile); }
Bytes raw_bytes(const device::Device& device, Bytes largest_tile) {
  return static_cast<Bytes>(device.pool().n_threads()) * piece_bytes(largest_tile);
}
Bytes outgoing_bytes(const device::Device& device, Bytes largest_tile) {
  if (device.reads_host_memory()) return 0;
  return std::max(kCardBatch, piece_bytes(largest_tile));
}

}  // namespace

PlanLineId WeightCopier::declare(memory::Plan& plan, const device::Device& device,
                                 Bytes largest_tile) {
  return plan.add({.owner = "weights",
                   .name = "staging",
                   .formula = format("{} threads, pieces of {} B", device.pool().n_threads(),
                                     piece_bytes(largest_tile)),
                   .where = device::kHostId,
                   .bytes = raw_bytes(device, largest_tile) + outgoing_bytes(device, largest_tile),
                   .phases = memory::kLoad});
}

WeightCopier::WeightCopier(const gguf::Model& file, device::Device& device, PlanLineId staging_line,
                           Bytes largest_tile)
    : file_(file),
      device_(device),
      piece_(piece_bytes(largest_tile)),
      raw_(value_or_throw(
          device.allocate(staging_line, raw_bytes(device, largest_tile), device::Mem::kPageable))) {
  if (const Bytes n = outgoing_bytes(device, largest_tile); n > 0) {
    outgoing_ = value_or_throw(device.allocate_staging(staging_line, n));
    stream_ = device.make_stream("load");
  }
}

void WeightCopier::read(const gguf::Tensor& tensor, kernels::Packing packing, Bytes begin,
                        std::span<std::byte> out) {
  const bool tiles = packing == kernels::Packing::kTiles;
  const Bytes unit = tiles ? quant::kTileRows * tensor.row_bytes() : 1;
  const Bytes piece = piece_ / unit * unit;
  const auto n_pieces = static_cast<int64_t>((out.size() + piece - 1) / piece);
  // The time is that of memory at its best; it says that sharing pays.
  const Loop loop{.n_items = n_pieces,
                  .ns_per_item = static_cast<double>(piece) * 0.1,
                  .share = device_.pool().by_place()};
  device_.pool().parallel_for(loop, [&](int64_t first, int64_t end, int thread) {
    for (int64_t i = first; i < end; ++i) {
      const Bytes at = static_cast<Bytes>(i) * piece, n = std::min<Bytes>(piece, out.size() - at);
      if (!tiles) {
        file_.read(tensor, begin + at, out.subspan(at, n));
        continue;
      }
      std::byte* const rows = raw_.data() + static_cast<Bytes>(thread) * piece_;
      file_.read(tensor, begin + at, {rows, n});
      for (Bytes tile = 0; tile < n; tile += unit) {
        quant::to_tile(tensor.type->type, tensor.n_columns(), rows + tile, &out[at + tile]);
      }
    }
  });
}

void WeightCopier::send(const device::MemView& to) {
  value_or_throw(stream_->copy(to, outgoing_.view().part(0, to.bytes)));
  if (!stream_->drain({"loading", "copy of weights"}, std::chrono::minutes(5))) {
    throw Error(ErrorCode::kDevice, "a copy of weights did not end within 5 minutes");
  }
}

void WeightCopier::copy(const gguf::Tensor& tensor, kernels::Packing packing,
                        const device::MemView& to, const std::function<void(Bytes)>& advanced) {
  const Bytes unit =
      packing == kernels::Packing::kTiles ? quant::kTileRows * tensor.row_bytes() : 1;
  const bool here = !outgoing_;
  // By place the whole tensor at once: its first rows to the first thread, as when it is used.
  const bool whole = here && device_.pool().by_place() == Loop::Share::kOwnFirst;
  const Bytes batch = whole
                          ? tensor.n_bytes
                          : (here ? std::max(kHostBatch, piece_) : outgoing_.bytes()) / unit * unit;
  for (Bytes at = 0; at < tensor.n_bytes; at += batch) {
    const Bytes n = std::min(batch, tensor.n_bytes - at);
    read(tensor, packing, at, {here ? to.data + at : outgoing_.data(), n});
    if (!here) send(to.part(at, n));
    advanced(n);
  }
}

void WeightCopier::put(std::span<const std::byte> bytes, const device::MemView& to) {
  if (!outgoing_) {
    std::memcpy(to.data, bytes.data(), bytes.size());
    return;
  }
  for (Bytes at = 0; at < bytes.size(); at += outgoing_.bytes()) {
    const Bytes n = std::min<Bytes>(outgoing_.bytes(), bytes.size() - at);
    std::memcpy(outgoing_.data(), bytes.data() + at, n);
    send(to.part(at, n));
  }
}

}  // namespace strata::model
