#include "strata/base/os/cpus.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <numeric>

#include "strata/base/os/cgroup.h"
#include "strata/base/os/fake_root.h"

namespace strata::os {
namespace {

// Answers like the kernel of a machine with `n_machine` CPUs: refuses a mask with fewer bits.
struct Mask {
  std::vector<int> cpus;
  int n_machine = 8;
  long operator()(size_t bytes, unsigned char* mask) const {
    if (bytes * 8 < static_cast<size_t>(n_machine)) return -EINVAL;
    for (const int cpu : cpus) {
      mask[cpu / 8] = static_cast<unsigned char>(mask[cpu / 8] | 1U << (cpu % 8));
    }
    return (n_machine + 63) / 64 * 8;
  }
};

Mask first(int n, int n_machine = 8) {
  Mask mask{.cpus = std::vector<int>(static_cast<size_t>(n)), .n_machine = n_machine};
  std::iota(mask.cpus.begin(), mask.cpus.end(), 0);
  return mask;
}

// F-104
TEST(CpuBudget, QuotaOfCgroup2) {
  struct Case {
    const char* quota;
    int n_allowed, want;
  };
  for (const Case& c :
       {Case{"200000 100000\n", 8, 2}, Case{"150000 100000\n", 8, 1}, Case{"50000 100000\n", 8, 1},
        Case{"max 100000\n", 8, 8}, Case{"800000 100000\n", 2, 2}, Case{"399999 100000\n", 8, 3}}) {
    FakeRoot fake;
    fake.cgroup2("/box").file("/sys/fs/cgroup/box/cpu.max", c.quota);
    const CpuBudget budget = cpu_budget(fake.root(), first(c.n_allowed));
    EXPECT_EQ(budget.n_cpus, c.want) << c.quota;
    EXPECT_EQ(budget.n_allowed, c.n_allowed);
  }
}

TEST(CpuBudget, NestedGroupsAllBind) {
  FakeRoot fake;
  fake.cgroup2("/outer/inner/leaf")
      .file("/sys/fs/cgroup/outer/cpu.max", "300000 100000\n")
      .file("/sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n")
      .file("/sys/fs/cgroup/outer/inner/leaf/cpu.max", "600000 100000\n");
  const CpuBudget budget = cpu_budget(fake.root(), first(8));
  EXPECT_EQ(budget.n_cpus, 3);
  EXPECT_EQ(budget.reason,
            "8 CPUs allowed (affinity mask), quota 3 (/sys/fs/cgroup/outer/cpu.max): 3");
}

TEST(CpuBudget, QuotaOfCgroup1) {
  FakeRoot fake;
  fake.file("/proc/self/cgroup", "5:memory:/docker/ab\n4:cpu,cpuacct:/docker/ab\n0::/\n")
      .file("/proc/self/mountinfo",
            "30 24 0:26 /docker/ab /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
            "31 24 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n")
      .file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n")
      .file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_budget(fake.root(), first(8)).n_cpus, 2);
  fake.file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(cpu_budget(fake.root(), first(8)).n_cpus, 8);
}

TEST(CpuBudget, AContainerThatSeesOnlyItsOwnGroup) {
  FakeRoot fake;
  // The group lies outside of what is mounted.
  fake.cgroup2("/../../other").file("/sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(cpu_budget(fake.root(), first(4)).n_cpus, 1);
  // The mount shows the group itself.
  FakeRoot bound;
  bound.cgroup2("/pod/box", "/pod/box").file("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(cpu_budget(bound.root(), first(4)).n_cpus, 2);
}

TEST(CpuBudget, NonsenseInTheGroupFilesIsNoLimit) {
  for (const char* text : {"", "x y\n", "0 100000\n", "100000 0\n", "-5 100000\n",
                           "99999999999999999999999 1\n", "100000\n"}) {
    FakeRoot fake;
    fake.cgroup2("/").file("/sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(cpu_budget(fake.root(), first(4)).n_cpus, 4) << text;
  }
  FakeRoot broken;
  broken.file("/proc/self/cgroup", ":::\n\n0:\n").file("/proc/self/mountinfo", "- -\n - \n");
  EXPECT_EQ(cgroup_dirs(broken.root(), "cpu").version, 0);
  EXPECT_EQ(cpu_budget(FakeRoot().root(), first(4)).n_cpus, 4);
}

// F-105
TEST(CpuBudget, Masks) {
  const FakeRoot fake;
  Mask every_second{.cpus = {}, .n_machine = 64};
  for (int cpu = 0; cpu < 64; cpu += 2) every_second.cpus.push_back(cpu);
  EXPECT_EQ(cpu_budget(fake.root(), first(1)).n_cpus, 1);
  EXPECT_EQ(cpu_budget(fake.root(), first(8)).n_cpus, 8);
  EXPECT_EQ(cpu_budget(fake.root(), every_second).n_cpus, 32);
  const Mask high{.cpus = {70, 100, 127}, .n_machine = 128};
  EXPECT_EQ(cpu_budget(fake.root(), high).n_cpus, 3);
  const Mask very_high{.cpus = {5, 1030, 4095}, .n_machine = 4096};
  EXPECT_EQ(allowed_cpus(very_high), (std::vector<int>{5, 1030, 4095}));
  EXPECT_EQ(cpu_budget(fake.root(), very_high).n_cpus, 3);
}

TEST(CpuBudget, AFailingOrEmptyMask) {
  FakeRoot fake;
  const auto fails = [](size_t, unsigned char*) { return long{-EPERM}; };
  const auto never_big_enough = [](size_t, unsigned char*) { return long{-EINVAL}; };
  EXPECT_EQ(cpu_budget(fake.root(), fails).n_cpus, 1);
  fake.file("/proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-2,8,10-11\n");
  EXPECT_EQ(cpu_budget(fake.root(), fails).n_cpus, 6);
  EXPECT_EQ(cpu_budget(fake.root(), never_big_enough).n_cpus, 6);
  EXPECT_EQ(cpu_budget(fake.root(), Mask{}).n_cpus, 6);
  for (const char* list : {"", "3-1", "0-99999999999", "a"}) {
    fake.file("/proc/self/status", std::string("Cpus_allowed_list:\t") + list + "\n");
    EXPECT_EQ(cpu_budget(fake.root(), fails).n_cpus, 1) << list;
  }
}

TEST(CpuBudget, ThisProcess) {
  const CpuBudget budget = cpu_budget();
  EXPECT_GE(budget.n_cpus, 1);
  EXPECT_LE(budget.n_cpus, budget.n_allowed);
  EXPECT_NE(budget.reason.find("affinity mask"), std::string::npos) << budget.reason;
}

TEST(ThreadChoice, AskedForWinsWithAWarning) {
  const CpuBudget budget{.n_cpus = 4, .n_allowed = 8, .quota = 4, .reason = "quota 4"};
  EXPECT_EQ(choose_threads({}, budget, 16).n_threads, 4);
  EXPECT_EQ(choose_threads({}, budget, 2).n_threads, 2);
  EXPECT_EQ(choose_threads({}, budget, 0).n_threads, 4);
  EXPECT_EQ(choose_threads({}, budget, 2).warning, "");
  EXPECT_EQ(choose_threads(4, budget, 2).warning, "");
  const ThreadChoice more = choose_threads(6, budget, 2);
  EXPECT_EQ(more.n_threads, 6);
  EXPECT_EQ(more.warning, "6 threads are more than the 4 CPUs of this process (quota 4)");
}

}  // namespace
}  // namespace strata::os
