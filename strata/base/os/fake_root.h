#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "strata/base/os/proc.h"

namespace strata::os {

// For tests: a folder that poses as /, gone when this is.
class FakeRoot {
 public:
  FakeRoot() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string(test->test_suite_name()) + "." + test->name();
    for (char& c : name) c = c == '/' ? '_' : c;
    static int count = 0;  // several roots in one test
    path_ = std::filesystem::path(testing::TempDir()) /
            ("strata-root-" + name + "-" + std::to_string(count++));
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~FakeRoot() { std::filesystem::remove_all(path_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  FakeRoot& file(const std::string& path, const std::string& text) {
    const std::filesystem::path full = path_.string() + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full, std::ios::binary) << text;
    return *this;
  }
  // Version 2 of the control groups, this process in `group`.
  FakeRoot& cgroup2(const std::string& group, const std::string& mount_root = "/") {
    file("/proc/self/cgroup", "0::" + group + "\n");
    return file("/proc/self/mountinfo", "22 1 0:20 / /proc rw - proc proc rw\n35 24 0:30 " +
                                            mount_root +
                                            " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup "
                                            "rw,nsdelegate\n");
  }

  SystemRoot root() const { return {.prefix = path_.string()}; }

 private:
  std::filesystem::path path_;
};

}  // namespace strata::os
