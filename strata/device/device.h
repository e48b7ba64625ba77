#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "strata/base/thread_pool.h"
#include "strata/device/event.h"
#include "strata/device/memory.h"
#include "strata/device/stream.h"
#include "strata/device/trips.h"
#include "strata/device/wait_registry.h"

namespace strata::device {

enum class Kind : uint8_t { kHost, kSim, kGpu };

// Which table of ops serves a device: sim computes with the CPU's, tests ask for the plain ones.
enum class Backend : uint8_t { kRef, kCpu, kGpu };

// Two pieces of pinned memory that pageable memory is copied through.
class StagingRing {
 public:
  struct Piece {
    MemView memory;
    std::unique_ptr<Event> done;  // the last copy of it
  };
  StagingRing(Allocation memory, std::unique_ptr<Event> first, std::unique_ptr<Event> second);
  Bytes piece_bytes() const { return pieces_[0].memory.bytes; }
  Piece& next() { return pieces_[n_++ % 2]; }
  // On the host. False: late.
  static bool wait(const Piece& piece);

 private:
  Allocation memory_;
  std::array<Piece, 2> pieces_;
  size_t n_ = 0;
};

// What a device works with; all of it outlives the device.
struct DeviceOptions {
  ThreadPool* pool = nullptr;      // null: the calling thread alone
  AllocationGate* gate = nullptr;  // null: everything is admitted
  WaitRegistry* waits = nullptr;   // null: one of its own
  Trips* trips = nullptr;          // null: of its own
  Backend backend = Backend::kCpu;
  uint64_t seed = 1;  // sim: which of the legal orders
  // Sim: work that never ends holds up who waits for it until the deadline, as on a card; else a
  // wait tells it at once.
  bool hangs_take_time = false;
};

// Measured, not assumed. 0 bytes: unknown.
struct Capacity {
  Bytes total = 0, free = 0;
};
struct Pinning {
  bool possible = false;
  Bytes limit = 0;  // 0: unknown or none
};

// What is known of a card beside its memory. Rates are bytes a second as a probe gave them, which
// may be nonsense; 0: unknown.
struct CardFacts {
  Bytes os_budget = 0;   // what the system lets one process have; 0: no such limit
  bool display = false;  // somebody looks at it
  double link_rate = 0, memory_rate = 0;
};

// One place with memory and streams. Allocations may be made and destroyed and the queries called
// from any thread, on sim from one; streams and events say for themselves.
class Device {
 public:
  virtual ~Device();
  static constexpr Bytes kGraphNodeBytes = 1024;  // drivers do not tell
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
  virtual CardFacts facts() const { return {}; }
  // Whether a stream of this device copies from that one's memory without the host between.
  virtual bool reaches(const Device&) const { return false; }
  // What a graph of so many nodes takes of its line.
  virtual Bytes graph_bytes(size_t n_nodes) const { return (n_nodes + 1) * kGraphNodeBytes; }
  // All is allocated and rehearsed, requests may come. For the fault rules of a sim.
  virtual void started() {}
  Bytes allocated() const { return allocated_.load(std::memory_order_relaxed); }  // of any Mem

  // Asks the gate, then the device. The address is a multiple of 256.
  // Faults: kResourceExhausted with the bytes asked and free.
  Try<Allocation> allocate(PlanLineId line, Bytes bytes, Mem mem);

  // Host memory that this device's streams copy from and to: pinned, or where that is refused
  // pageable memory, whose copies go through a small ring of pinned memory from then on. The ring
  // takes its memory from `ring_line`, which the plan gives kRingBytes. Faults: as allocate.
  Try<Allocation> allocate_staging(PlanLineId line, Bytes bytes);
  void set_ring_line(PlanLineId line) { ring_line_ = line; }
  static constexpr Bytes kRingBytes = Bytes{128} << 10;
  // For Stream. One thread at a time.
  Try<StagingRing*> ring();

  // Throws kResourceExhausted or kDevice.
  virtual std::unique_ptr<Stream> make_stream(std::string name) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;

  ThreadPool& pool() const { return *pool_; }
  WaitRegistry& waits() const { return *waits_; }
  Trips& trips() const { return *trips_; }

 protected:
  const DeviceOptions& options() const { return options_; }
  Device(DeviceId id, Kind kind, std::string name, const DeviceOptions& options);

 private:
  friend class Allocation;
  virtual Try<std::byte*> do_allocate(Bytes bytes, Mem mem) = 0;
  virtual void do_free(const MemView& view) noexcept = 0;
  void free(const Allocation& allocation) noexcept;

 protected:
  // Before the last of what a device is made of goes.
  void drop_ring() { ring_.reset(); }

 private:
  DeviceId id_;
  Kind kind_;
  std::string name_;
  DeviceOptions options_;
  std::unique_ptr<ThreadPool> own_pool_;
  std::unique_ptr<WaitRegistry> own_waits_;
  std::unique_ptr<Trips> own_trips_;
  ThreadPool* pool_;
  WaitRegistry* waits_;
  Trips* trips_;
  PlanLineId ring_line_;
  std::unique_ptr<StagingRing> ring_;
  std::atomic<Bytes> allocated_{0};
  std::atomic<int64_t> n_allocations_{0};
};

}  // namespace strata::device
