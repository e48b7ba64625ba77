#pragma once

#include <span>
#include <vector>

#include "strata/device/device.h"
#include "strata/device/stream.h"

namespace strata::model {

// A device that computes some layers of the trunk, one after the other, on a stream of its own.
// Everything named here outlives the model.
struct Stage {
  device::Device* device = nullptr;
  device::Stream* stream = nullptr;
  int first_layer = 0, end_layer = 0;

  bool is_host() const { return device->kind() == device::Kind::kHost; }
  // Whether queueing op by op costs more than the ops: what graphs are for.
  bool gains_by_graphs() const { return !is_host(); }
  // Of the processor an op is one launch, of a card some.
  static size_t nodes_per_op(const device::Device& d) {
    return d.kind() == device::Kind::kGpu ? 8 : 1;
  }
  // Bytes of the device's own memory, for copies.
  device::MemView at(void* data, Bytes bytes) const {
    return {.data = static_cast<std::byte*>(data),
            .bytes = bytes,
            .mem = device->work_memory(),
            .device = device->id()};
  }
};

// Where a model runs. One device is the split with one stage.
struct Stages {
  device::Device* host = nullptr;  // looks up what is found by row: embeddings, n-grams
  device::Stream* host_stream = nullptr;
  std::vector<Stage> list;  // in order of layers, without gaps; at least one

  // Also has the head and the draft layer. Who has waited for its stream has waited for the step.
  const Stage& last() const { return list.back(); }
};

}  // namespace strata::model
