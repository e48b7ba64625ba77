#include "strata/base/os/memory.h"

#include <gtest/gtest.h>

#include <vector>

#include "strata/base/os/fake_root.h"
#include "strata/base/os/topology.h"

namespace strata::os {
namespace {

constexpr const char* kMeminfo =
    "MemTotal:       16000000 kB\nMemFree:         1000000 kB\nMemAvailable:    8000000 kB\n"
    "SwapFree:        9000000 kB\n";

TEST(MemoryBudget, TheMachineAlone) {
  FakeRoot fake;
  fake.file("/proc/meminfo", kMeminfo);
  const MemoryBudget budget = memory_budget(fake.root());
  EXPECT_EQ(budget.total, Bytes{16000000} * 1024);
  EXPECT_EQ(budget.available, Bytes{8000000} * 1024);
}

TEST(MemoryBudget, TheTightestGroupOnTheWayUp) {
  FakeRoot fake;
  fake.file("/proc/meminfo", kMeminfo)
      .cgroup2("/a/b")
      .file("/sys/fs/cgroup/a/b/memory.max", "max\n")
      .file("/sys/fs/cgroup/a/b/memory.current", "1000\n")
      .file("/sys/fs/cgroup/a/memory.max", "4000000000\n")
      .file("/sys/fs/cgroup/a/memory.current", "3000000000\n")
      .file("/sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 500000000\n");
  const MemoryBudget budget = memory_budget(fake.root());
  EXPECT_EQ(budget.total, 4000000000U);
  EXPECT_EQ(budget.available, 1500000000U);
  EXPECT_EQ(budget.reason, "1500000000 bytes left of the 4000000000 that /sys/fs/cgroup/a grants");

  fake.file("/sys/fs/cgroup/a/memory.high", "3500000000\n");
  EXPECT_EQ(memory_budget(fake.root()).available, 1000000000U);
  fake.file("/sys/fs/cgroup/a/memory.current", "9000000000\n");  // above its limit
  EXPECT_EQ(memory_budget(fake.root()).available, 0U);
}

TEST(MemoryBudget, AWideGroupMayHaveLessLeftThanANarrowOne) {
  FakeRoot fake;
  fake.file("/proc/meminfo", kMeminfo)
      .cgroup2("/a/b")
      .file("/sys/fs/cgroup/a/b/memory.max", "4000000000\n")
      .file("/sys/fs/cgroup/a/b/memory.current", "1000000000\n")
      .file("/sys/fs/cgroup/a/memory.max", "8000000000\n")
      .file("/sys/fs/cgroup/a/memory.current", "7500000000\n");
  const MemoryBudget budget = memory_budget(fake.root());
  EXPECT_EQ(budget.total, 4000000000U);
  EXPECT_EQ(budget.available, 500000000U);
  EXPECT_EQ(budget.reason, "500000000 bytes left of the 8000000000 that /sys/fs/cgroup/a grants");
}

TEST(MemoryBudget, AGroupWithNothingLeftStaysAtNothing) {
  FakeRoot fake;
  fake.file("/proc/meminfo", kMeminfo)
      .cgroup2("/a/b")
      .file("/sys/fs/cgroup/a/b/memory.max", "1000000000\n")
      .file("/sys/fs/cgroup/a/b/memory.current", "1000000000\n")
      .file("/sys/fs/cgroup/a/memory.max", "8000000000\n")
      .file("/sys/fs/cgroup/a/memory.current", "2000000000\n");
  EXPECT_EQ(memory_budget(fake.root()).available, 0U);
}

TEST(MemoryBudget, Cgroup1AndItsWordForNoLimit) {
  FakeRoot fake;
  fake.file("/proc/meminfo", kMeminfo)
      .file("/proc/self/cgroup", "5:memory:/x\n")
      .file("/proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup/memory rw - cgroup cg rw,memory\n")
      .file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
      .file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "5\n")
      .file("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "2000000000\n")
      .file("/sys/fs/cgroup/memory/x/memory.usage_in_bytes", "700000000\n")
      .file("/sys/fs/cgroup/memory/x/memory.stat", "total_inactive_file 200000000\n");
  EXPECT_EQ(memory_budget(fake.root()).available, 1500000000U);
}

TEST(MemoryBudget, AbsurdFilesAreUnknown) {
  FakeRoot fake;
  EXPECT_EQ(memory_budget(fake.root()).available, 0U);
  fake.file("/proc/meminfo", "MemTotal: 99999999999999999999 kB\nMemAvailable: -4 kB\n");
  EXPECT_EQ(memory_budget(fake.root()).total, 0U);
  EXPECT_EQ(memory_budget(fake.root()).available, 0U);
  EXPECT_EQ(memory_budget(fake.root()).reason, "/proc/meminfo does not tell");
}

TEST(ProcessMemory, Fields) {
  FakeRoot fake;
  fake.file("/proc/self/status",
            "VmPeak:\t  90 kB\nVmHWM:\t  40 kB\nVmRSS:\t  30 kB\nRssAnon:\t  20 kB\n");
  const ProcessMemory memory = process_memory(fake.root());
  EXPECT_EQ(memory.rss, 30U * 1024);
  EXPECT_EQ(memory.peak_rss, 40U * 1024);
  EXPECT_EQ(memory.anon, 20U * 1024);
  EXPECT_EQ(process_memory(FakeRoot().root()).rss, 0U);
}

TEST(ProcessMemory, ThisProcess) {
  const ProcessMemory before = process_memory();
  EXPECT_GT(before.anon, 0U);
  EXPECT_GE(before.peak_rss, before.rss);
  constexpr size_t kBytes = 64 << 20;
  PeakAnonMemory peak;
  {
    const std::vector<char> block(kBytes, 1);
    EXPECT_EQ(block[kBytes / 2], 1);
    EXPECT_GE(peak.peak(), before.anon + kBytes / 2);
  }
  EXPECT_GE(peak.peak(), before.anon + kBytes / 2);  // it stays
}

TEST(Topology, CountsCoresNotThreads) {
  const Topology two_sockets = read_topology("pack:2 [numa] core:4 pu:2");
  EXPECT_EQ(two_sockets.n_cores, 8);
  EXPECT_EQ(two_sockets.n_threads, 16);
  EXPECT_EQ(two_sockets.n_numa_nodes, 2);
  EXPECT_EQ(read_topology("not a machine").n_cores, 0);
  const Topology here = read_topology();
  EXPECT_GE(here.n_cores, 1);
  EXPECT_GE(here.n_threads, here.n_cores);
}

TEST(Topology, ThreadsOfANodeStandTogether) {
  const Topology two = read_topology("pack:2 [numa] core:4 pu:2");
  ASSERT_EQ(two.node_cpus.size(), 2U);
  EXPECT_EQ(two.node_cpus[1], (std::vector<int>{8, 9, 10, 11, 12, 13, 14, 15}));
  const auto eight = thread_cpus(two, 8);
  ASSERT_EQ(eight.size(), 8U);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(eight[i], two.node_cpus[i / 4]) << i;
  EXPECT_EQ(thread_cpus(two, 1), (std::vector<std::vector<int>>{two.node_cpus[0]}));
  const auto three = thread_cpus(two, 3);
  EXPECT_EQ(three[0], two.node_cpus[0]);
  EXPECT_EQ(three[2], two.node_cpus[1]);

  // As many as a node has CPUs: a quarter of the machine gets a quarter of the threads.
  const Topology uneven{.node_cpus = {{0, 1}, {}, {2, 3, 4, 5, 6, 7}}};
  const auto four = thread_cpus(uneven, 4);
  EXPECT_EQ(four[0], uneven.node_cpus[0]);
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(four[i], uneven.node_cpus[2]) << i;

  EXPECT_TRUE(thread_cpus(read_topology("pack:1 [numa] core:4 pu:1"), 4).empty());
  EXPECT_TRUE(thread_cpus(Topology{}, 4).empty());
}

}  // namespace
}  // namespace strata::os
