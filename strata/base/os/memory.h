#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "strata/base/ids.h"
#include "strata/base/os/proc.h"

namespace strata::os {

// What this process may still take without paging: the smallest of what the machine has available
// and what each control group above leaves, page cache that can be dropped counted as left. Swap
// never counts. 0: unknown.
struct MemoryBudget {
  Bytes total = 0;  // of the machine, or the smallest limit
  Bytes available = 0;
  std::string reason;
};
MemoryBudget memory_budget(const SystemRoot& root = {});

// 0: unknown.
struct ProcessMemory {
  Bytes rss = 0;
  Bytes peak_rss = 0;  // VmHWM: since the process began
  Bytes anon = 0;      // RssAnon: without mapped files
};
ProcessMemory process_memory(const SystemRoot& root = {});

// Asks for large pages behind memory that is not touched yet: hundreds of times fewer page faults
// while it is filled, fewer misses of the TLB afterwards. A hint for the whole pages inside.
void want_huge_pages(std::span<std::byte> memory);

// The largest RssAnon seen. The kernel keeps no such peak, so a thread looks every few ms; a spike
// shorter than that may be missed.
class PeakAnonMemory {
 public:
  explicit PeakAnonMemory(std::chrono::milliseconds every = std::chrono::milliseconds(10),
                          SystemRoot root = {});
  ~PeakAnonMemory();
  PeakAnonMemory(const PeakAnonMemory&) = delete;
  PeakAnonMemory& operator=(const PeakAnonMemory&) = delete;

  Bytes peak();  // looks once more

 private:
  void look();

  std::chrono::milliseconds every_;
  SystemRoot root_;
  std::mutex mutex_;
  std::condition_variable wake_;
  Bytes peak_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace strata::os
