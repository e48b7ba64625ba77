#pragma once

#include <atomic>
#include <cstdint>

#include "strata/base/ids.h"

namespace strata::device {

// Written by one thread, read by any: a plain add, not a locked one.
class Counter {
 public:
  void add(uint64_t n) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// What passed through a stream, at the time it was asked for (not when it ran).
struct StreamCounters {
  Counter launches, copies, copied_bytes, records, waits, captures, replays;
  Counter read_bytes, written_bytes, ops;  // as the costs of the launches say
};

}  // namespace strata::device
