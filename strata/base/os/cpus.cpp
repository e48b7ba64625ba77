#include "strata/base/os/cpus.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <sstream>

#include "strata/base/format.h"
#include "strata/base/os/cgroup.h"

namespace strata::os {
namespace {

// The raw call tells how many bytes it wrote; the C library's wrapper does not.
long own_affinity(size_t bytes, unsigned char* mask) {
  const long n = syscall(SYS_sched_getaffinity, 0, bytes, mask);
  return n < 0 ? -errno : n;
}

struct Quota {
  double cpus = 0;
  std::string source;
};

// "200000 100000" or "max 100000".
std::optional<double> quota_v2(std::string_view text) {
  const size_t blank = text.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  const auto time = parse_number(text.substr(0, blank));
  const auto period = parse_number(text.substr(blank));
  if (!time || !period || *time == 0 || *period == 0) return std::nullopt;
  return static_cast<double>(*time) / static_cast<double>(*period);
}

// Every group on the way up binds, so the smallest counts.
Quota smallest_quota(const SystemRoot& root) {
  Quota least;
  const CgroupDirs groups = cgroup_dirs(root, "cpu");
  for (const std::string& dir : groups.dirs) {
    std::optional<double> cpus;
    std::string file;
    if (groups.version == 2) {
      file = dir + "/cpu.max";
      if (const auto text = read_text(root, file)) cpus = quota_v2(*text);
    } else {
      file = dir + "/cpu.cfs_quota_us";
      const auto time = read_text(root, file);
      const auto period = read_text(root, dir + "/cpu.cfs_period_us");
      // -1, no limit, does not parse as a number.
      if (time && period) {
        const auto t = parse_number(*time), p = parse_number(*period);
        if (t && p && *t > 0 && *p > 0) cpus = static_cast<double>(*t) / static_cast<double>(*p);
      }
    }
    if (cpus && (least.cpus == 0 || *cpus < least.cpus)) {
      least = {.cpus = *cpus, .source = file};
    }
  }
  return least;
}

// "Cpus_allowed_list:\t0-3,8" of /proc/self/status: the same mask by another way.
int count_status_list(const SystemRoot& root) {
  const auto text = read_text(root, "/proc/self/status");
  if (!text) return 0;
  std::istringstream lines(*text);
  constexpr std::string_view kField = "Cpus_allowed_list:";
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(kField)) continue;
    std::istringstream list(line.substr(kField.size()));
    int64_t n = 0;
    for (std::string range; std::getline(list, range, ',');) {
      const size_t dash = range.find('-');
      const auto first = parse_number(range.substr(0, dash));
      const auto last = dash == std::string::npos ? first : parse_number(range.substr(dash + 1));
      constexpr uint64_t kAbsurd = 1 << 20;
      if (!first || !last || *last < *first || *last >= kAbsurd) return 0;
      n += static_cast<int64_t>(*last - *first + 1);
    }
    return static_cast<int>(n);
  }
  return 0;
}

}  // namespace

std::vector<int> allowed_cpus(AffinityCall affinity) {
  constexpr size_t kMaxBytes = 1 << 17;  // a million CPUs
  for (size_t bytes = 128; bytes <= kMaxBytes; bytes *= 4) {
    std::vector<unsigned char> mask(bytes);
    const long n = affinity(bytes, mask.data());
    if (n == -EINVAL) continue;  // the machine may have more CPUs than the mask has bits
    std::vector<int> cpus;
    const auto n_bytes = std::clamp<long>(n, 0, static_cast<long>(bytes));
    for (int cpu = 0; cpu < n_bytes * 8; ++cpu) {
      if ((mask[static_cast<size_t>(cpu / 8)] >> (cpu % 8) & 1) != 0) cpus.push_back(cpu);
    }
    return cpus;
  }
  return {};
}

CpuBudget cpu_budget(const SystemRoot& root, AffinityCall affinity) {
  CpuBudget budget;
  budget.n_allowed = static_cast<int>(allowed_cpus(affinity).size());
  std::string how = "affinity mask";
  if (budget.n_allowed == 0) {
    budget.n_allowed = count_status_list(root);
    how = "/proc/self/status, as the affinity call failed";
  }
  if (budget.n_allowed == 0) {
    budget.n_allowed = 1;
    how = "assumed: neither the affinity call nor /proc/self/status tells";
  }
  const Quota quota = smallest_quota(root);
  budget.quota = quota.cpus;
  double cpus = budget.n_allowed;
  if (quota.cpus > 0) cpus = std::min(cpus, quota.cpus);
  budget.n_cpus = std::max(1, static_cast<int>(std::floor(cpus)));
  budget.reason = format("{} CPUs allowed ({}), ", budget.n_allowed, how) +
                  (quota.cpus > 0 ? format("quota {:.4g} ({})", quota.cpus, quota.source)
                                  : std::string("no quota")) +
                  format(": {}", budget.n_cpus);
  return budget;
}

CpuBudget cpu_budget() {
  return cpu_budget({},
                    [](size_t bytes, unsigned char* mask) { return own_affinity(bytes, mask); });
}

ThreadChoice choose_threads(std::optional<int> asked, const CpuBudget& budget, int n_cores) {
  ThreadChoice choice;
  if (asked) {
    choice.n_threads = std::max(1, *asked);
    choice.reason = format("{} threads as asked", choice.n_threads);
    if (choice.n_threads > budget.n_cpus) {
      choice.warning = format("{} threads are more than the {} CPUs of this process ({})",
                              choice.n_threads, budget.n_cpus, budget.reason);
    }
    return choice;
  }
  choice.n_threads = n_cores > 0 ? std::min(n_cores, budget.n_cpus) : budget.n_cpus;
  choice.reason =
      format("{} threads: {} physical cores; {}", choice.n_threads,
             n_cores > 0 ? format("{}", n_cores) : std::string("unknown"), budget.reason);
  return choice;
}

}  // namespace strata::os
