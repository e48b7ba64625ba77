#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "strata/io/os/read_queue.h"
#include "strata/io/source.h"

namespace strata::io {

struct ReadCounters {
  uint64_t reads = 0;         // that were done
  uint64_t bytes = 0;         // asked for by those
  uint64_t device_bytes = 0;  // read for them, in whole blocks
};

// Reads stretches of files past the page cache, many at the same time, for what is read once and
// kept in memory of the caller's: blobs of experts. On io_uring; where the system refuses that, on
// threads, with one warning. Files on systems without direct access are read through the page cache
// and dropped from it. One thread.
class DirectReader {
 public:
  // Buffers begin at a multiple of this and have a whole number of it.
  static constexpr size_t kBlock = 4096;
  // Bytes that a buffer must have for n bytes at any offset.
  static constexpr size_t buffer_bytes(size_t n) { return (n + 2 * kBlock - 1) / kBlock * kBlock; }

  enum class Way : uint8_t { kUring, kThreads };

  // depth: reads at the same time.
  explicit DirectReader(int depth, Way way = Way::kUring);
  // On a queue of the caller's that takes `depth` reads.
  DirectReader(int depth, std::unique_ptr<os::ReadQueue> queue);
  ~DirectReader();
  DirectReader(const DirectReader&) = delete;
  DirectReader& operator=(const DirectReader&) = delete;

  // The file that `source` reads; returns its number. Errors: kNotFound; kIo, also if another file
  // has taken its place.
  int add(const ByteSource& source);

  struct Read {
    int file = 0;
    uint64_t offset = 0;
    size_t bytes = 0;
    std::span<std::byte> buffer;  // buffer_bytes(bytes); lives until the read is done
    uint64_t tag = 0;
  };
  // There must be room: fewer than depth() reads under way.
  void start(const Read& read);
  int depth() const { return depth_; }
  int n_under_way() const { return n_under_way_; }

  struct Done {
    uint64_t tag = 0;
    std::span<const std::byte> bytes;  // within the buffer; empty if it failed
    std::string error;                 // then: file, offset, why
  };
  // What is done by now, or by the end of the limit at the latest if nothing is.
  std::vector<Done> collect(std::chrono::milliseconds limit);

  Way way() const { return way_; }  // the one that came to be
  const ReadCounters& counters() const { return counters_; }

 private:
  struct File {
    std::string path;
    strata::os::Descriptor descriptor;
    uint64_t bytes = 0;
    bool direct = false;
  };
  struct Slot {
    Read read;
    uint64_t begin = 0;  // of the blocks
    size_t length = 0;   // of the blocks, at most up to the end of the file
    size_t done = 0;
    int tries = 0;  // that the system broke off
  };
  void make_slots();
  void submit(int slot);
  bool finish(int slot, int64_t result, Done& done);

  int depth_;
  Way way_;
  std::vector<File> files_;
  std::unique_ptr<os::ReadQueue> queue_;  // goes first: it waits for reads of the files
  std::vector<Slot> slots_;
  std::vector<int> free_;
  int n_under_way_ = 0;
  ReadCounters counters_;
};

}  // namespace strata::io
