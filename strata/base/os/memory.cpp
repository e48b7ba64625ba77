#include "strata/base/os/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <sstream>

#include "strata/base/format.h"
#include "strata/base/os/cgroup.h"
#include "strata/base/os/thread.h"

namespace strata::os {
namespace {

// "name 123" in memory.stat.
Bytes stat_field(std::string_view text, std::string_view field) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const size_t blank = line.find(' ');
    if (blank == std::string::npos || std::string_view(line).substr(0, blank) != field) continue;
    return parse_number(line.substr(blank)).value_or(0);
  }
  return 0;
}

std::optional<Bytes> number_in(const SystemRoot& root, const std::string& path) {
  const auto text = read_text(root, path);
  return text ? parse_number(*text) : std::nullopt;  // "max" is no number: no limit
}

struct GroupMemory {
  Bytes limit = 0, left = 0;
};

std::optional<GroupMemory> group_memory(const SystemRoot& root, int version,
                                        const std::string& dir) {
  const bool v2 = version == 2;
  std::optional<Bytes> limit =
      number_in(root, dir + (v2 ? "/memory.max" : "/memory.limit_in_bytes"));
  if (v2) {
    // Above memory.high the kernel slows us down as if out of memory.
    const auto high = number_in(root, dir + "/memory.high");
    if (high && (!limit || *high < *limit)) limit = high;
  }
  const auto used = number_in(root, dir + (v2 ? "/memory.current" : "/memory.usage_in_bytes"));
  if (!limit || !used) return std::nullopt;
  const auto stat = read_text(root, dir + "/memory.stat");
  const Bytes droppable =
      stat ? stat_field(*stat, v2 ? "inactive_file" : "total_inactive_file") : 0;
  const Bytes held = *used - std::min(*used, droppable);
  return GroupMemory{.limit = *limit, .left = *limit - std::min(*limit, held)};
}

}  // namespace

MemoryBudget memory_budget(const SystemRoot& root) {
  MemoryBudget budget;
  const auto text = read_text(root, "/proc/meminfo");
  budget.total = text ? kilobyte_field(*text, "MemTotal").value_or(0) : 0;
  budget.available = text ? kilobyte_field(*text, "MemAvailable").value_or(0) : 0;
  budget.reason = budget.available > 0 ? format("{} bytes available of {} (/proc/meminfo)",
                                                budget.available, budget.total)
                                       : std::string("/proc/meminfo does not tell");
  bool known = budget.available > 0;
  const CgroupDirs groups = cgroup_dirs(root, "memory");
  for (const std::string& dir : groups.dirs) {
    const auto group = group_memory(root, groups.version, dir);
    if (!group) continue;
    // Version 1 writes "no limit" as a number near 2^63; what it leaves then binds nobody. A group
    // with a wide limit may still have less left than a narrow one: others use it, too.
    if (budget.total == 0 || group->limit < budget.total) budget.total = group->limit;
    if (!known || group->left < budget.available) {
      known = true;
      budget.available = group->left;
      budget.reason =
          format("{} bytes left of the {} that {} grants", group->left, group->limit, dir);
    }
  }
  return budget;
}

ProcessMemory process_memory(const SystemRoot& root) {
  const auto text = read_text(root, "/proc/self/status");
  if (!text) return {};
  return {.rss = kilobyte_field(*text, "VmRSS").value_or(0),
          .peak_rss = kilobyte_field(*text, "VmHWM").value_or(0),
          .anon = kilobyte_field(*text, "RssAnon").value_or(0)};
}

void want_huge_pages(std::span<std::byte> memory) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(memory.data());
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t end = (begin + memory.size()) / page * page;
  if (first >= end) return;
  static_cast<void>(::madvise(memory.data() + (first - begin), end - first, MADV_HUGEPAGE));
}

PeakAnonMemory::PeakAnonMemory(std::chrono::milliseconds every, SystemRoot root)
    : every_(every), root_(std::move(root)) {
  look();
  thread_ = std::thread([this] {
    set_thread_name("strata-mem");
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, every_, [this] { return stop_; })) {
      lock.unlock();
      look();
      lock.lock();
    }
  });
}

PeakAnonMemory::~PeakAnonMemory() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void PeakAnonMemory::look() {
  const Bytes now = process_memory(root_).anon;
  const std::lock_guard lock(mutex_);
  peak_ = std::max(peak_, now);
}

Bytes PeakAnonMemory::peak() {
  look();
  const std::lock_guard lock(mutex_);
  return peak_;
}

}  // namespace strata::os
