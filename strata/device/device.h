#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "strata/base/thread_pool.h"
#include "strata/device/event.h"
#include "strata/device/memory.h"
#include "strata/device/stream.h"
#include "strata/device/wait_registry.h"

namespace strata::device {

enum class Kind : uint8_t { kHost, kSim, kGpu };

// Which table of ops serves a device: sim computes with the CPU's, tests ask for the plain ones.
enum class Backend : uint8_t { kRef, kCpu, kGpu };

// What a device works with; all of it outlives the device.
struct DeviceOptions {
  ThreadPool* pool = nullptr;      // null: the calling thread alone
  AllocationGate* gate = nullptr;  // null: everything is admitted
  WaitRegistry* waits = nullptr;   // null: one of its own
  Backend backend = Backend::kCpu;
  uint64_t seed = 1;  // sim: which of the legal orders
};

// Measured, not assumed. 0 bytes: unknown.
struct Capacity {
  Bytes total = 0, free = 0;
};
struct Pinning {
  bool possible = false;
  Bytes limit = 0;  // 0: unknown or none
};

// One place with memory and streams. Allocations may be made and destroyed and the queries called
// from any thread, on sim from one; streams and events say for themselves.
class Device {
 public:
  virtual ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  DeviceId id() const { return id_; }
  Kind kind() const { return kind_; }
  Backend backend() const { return options_.backend; }
  const std::string& name() const { return name_; }  // "host", "sim 1 (8 GiB)"

  // Where ops find their operands, and where the host lays out what is copied there. Work memory
  // lies at id(): of the host all memory is the same.
  Mem work_memory() const { return kind_ == Kind::kHost ? Mem::kPageable : Mem::kDevice; }
  Mem staging_memory() const { return kind_ == Kind::kHost ? Mem::kPageable : Mem::kPinned; }
  // Whether ops read any host memory in place, such as a mapped file.
  bool reads_host_memory() const { return kind_ == Kind::kHost; }

  virtual Capacity capacity() const = 0;
  virtual Pinning pinning() const = 0;
  Bytes allocated() const { return allocated_.load(std::memory_order_relaxed); }  // of any Mem

  // Asks the gate, then the device. The address is a multiple of 256.
  // Faults: kResourceExhausted with the bytes asked and free.
  Try<Allocation> allocate(PlanLineId line, Bytes bytes, Mem mem);

  // Throws kResourceExhausted or kDevice.
  virtual std::unique_ptr<Stream> make_stream(std::string name) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;

  ThreadPool& pool() const { return *pool_; }
  WaitRegistry& waits() const { return *waits_; }

 protected:
  Device(DeviceId id, Kind kind, std::string name, const DeviceOptions& options);

 private:
  friend class Allocation;
  virtual Try<std::byte*> do_allocate(Bytes bytes, Mem mem) = 0;
  virtual void do_free(const MemView& view) noexcept = 0;
  void free(const Allocation& allocation) noexcept;

  DeviceId id_;
  Kind kind_;
  std::string name_;
  DeviceOptions options_;
  std::unique_ptr<ThreadPool> own_pool_;
  std::unique_ptr<WaitRegistry> own_waits_;
  ThreadPool* pool_;
  WaitRegistry* waits_;
  std::atomic<Bytes> allocated_{0};
  std::atomic<int64_t> n_allocations_{0};
};

}  // namespace strata::device
