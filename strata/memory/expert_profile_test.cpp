#include "strata/memory/expert_profile.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <span>
#include <thread>

#include "strata/base/error.h"
#include "tests/support/temp_folder.h"

namespace strata::memory {
namespace {

using strata::testing::read_file;
using strata::testing::TempFolder;

ExpertProfile example(int n_layers, int n_experts, int seed = 1) {
  std::vector<int32_t> counts(static_cast<size_t>(n_layers * n_experts));
  for (size_t i = 0; i < counts.size(); ++i) {
    counts[i] = static_cast<int32_t>(i * 7919 + static_cast<size_t>(seed)) % 101;
  }
  return ExpertProfile::from_counts(n_layers, n_experts, counts);
}

// What is warned about while `work` runs.
template <class Work>
std::string warnings_of(const Work& work) {
  ::testing::internal::CaptureStderr();
  work();
  return ::testing::internal::GetCapturedStderr();
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(ExpertProfile, RanksByCountThenExpertThenLayer) {
  const ExpertProfile p = ExpertProfile::from_counts(2, 3,
                                                     {5, 0, 9,  //
                                                      0, 5, 0});
  const std::vector<ExpertPlace> expected = {{0, 2}, {0, 0}, {1, 1}, {1, 0}, {0, 1}, {1, 2}};
  EXPECT_EQ(p.ranked, expected);
}

TEST(ExpertProfile, ComesBackAsWritten) {
  const TempFolder folder;
  const ExpertProfile p = example(4, 16);
  write_expert_profile(folder.path("p"), p);
  EXPECT_EQ(read_expert_profile(folder.path("p")), p);
  EXPECT_EQ(usable_expert_profile(folder.path("p"), 4, 16), p);
}

// As other programs write it: by hand, with a count of slots and only two ranked.
TEST(ExpertProfile, ReadsTheBytesOfTheFormat) {
  const uint32_t head[] = {1, 1, 3, 64, 2};
  const uint16_t pairs[] = {0, 2, 0, 0};
  const int32_t counts[] = {4, 0, 11};
  std::string bytes = "STRP";
  const auto add = [&](const auto& v) {
    bytes.append(reinterpret_cast<const char*>(v), sizeof(v));
  };
  add(head);
  add(pairs);
  add(counts);
  const TempFolder folder;
  const ExpertProfile p = read_expert_profile(folder.write("p", bytes));
  EXPECT_EQ(p.n_layers, 1);
  EXPECT_EQ(p.n_experts, 3);
  EXPECT_EQ(p.ranked, (std::vector<ExpertPlace>{{0, 2}, {0, 0}}));
  EXPECT_EQ(p.counts, (std::vector<int32_t>{4, 0, 11}));
}

TEST(ExpertProfile, F009_AProfileOfAnotherModelIsOneWarning) {
  const TempFolder folder;
  write_expert_profile(folder.path("p"), example(4, 8));
  const std::string said =
      warnings_of([&] { EXPECT_FALSE(usable_expert_profile(folder.path("p"), 4, 16)); });
  EXPECT_EQ(count(said, "warning"), 1u) << said;
  EXPECT_NE(said.find("4 layers of 8 experts, this model has 4 of 16"), std::string::npos) << said;
}

TEST(ExpertProfile, F009_EveryCutIsOneWarning) {
  const TempFolder folder;
  write_expert_profile(folder.path("p"), example(2, 4));
  const std::vector<std::byte> whole = read_file(folder.path("p"));
  for (size_t n = 0; n < whole.size(); ++n) {
    const std::string cut = folder.write("cut", std::span(whole).first(n));
    const std::string said =
        warnings_of([&] { EXPECT_FALSE(usable_expert_profile(cut, 2, 4)) << n; });
    EXPECT_EQ(count(said, "warning"), 1u) << n << ": " << said;
  }
  const std::string said =
      warnings_of([&] { EXPECT_FALSE(usable_expert_profile(folder.path("absent"), 2, 4)); });
  EXPECT_EQ(count(said, "warning"), 1u) << said;
}

TEST(ExpertProfile, F009_CountsBelowZeroAreRefused) {
  const TempFolder folder;
  ExpertProfile p = example(2, 4);
  p.counts[5] = -1;
  write_expert_profile(folder.path("p"), p);
  EXPECT_THROW(read_expert_profile(folder.path("p")), Error);
}

TEST(ExpertProfile, F009_PairsTwiceOrOutOfRangeAreRefused) {
  const TempFolder folder;
  const auto refused = [&](const ExpertProfile& p, const std::string& part) {
    write_expert_profile(folder.path("p"), p);
    try {
      read_expert_profile(folder.path("p"));
      ADD_FAILURE() << "accepted: " << part;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kCorruptFile);
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  };
  ExpertProfile p = example(2, 4);
  p.ranked[3] = p.ranked[1];
  refused(p, "ranked twice");
  p = example(2, 4);
  p.ranked[5] = {0, 4};
  refused(p, "rank 5 is expert 4 of layer 0");
  p.ranked[5] = {2, 0};
  refused(p, "rank 5 is expert 0 of layer 2");
}

// Claims that would need much memory are refused by the size of the file first.
TEST(ExpertProfile, F009_WhatTheHeaderClaimsMustBeThere) {
  const TempFolder folder;
  write_expert_profile(folder.path("p"), example(2, 4));
  std::vector<std::byte> bytes = read_file(folder.path("p"));
  for (size_t word = 1; word < 6; ++word) {
    if (word == 4) continue;  // slots of the maker: told, not used
    for (const uint32_t bad : {0xFFFFFFFFu, 0x80000000u, 0u}) {
      std::vector<std::byte> damaged = bytes;
      std::memcpy(&damaged[4 * word], &bad, 4);
      EXPECT_THROW(read_expert_profile(folder.write("d", damaged)), Error) << word << " " << bad;
    }
  }
}

// Killed while it saves, at any moment: the path holds the last whole profile.
TEST(ExpertProfile, F009_AKillWhileSavingLeavesAWholeProfile) {
  const TempFolder folder;
  const std::string path = folder.path("p");
  write_expert_profile(path, example(48, 512, 0));
  for (int round = 0; round < 10; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int seed = 0;; ++seed) write_expert_profile(path, example(48, 512, seed % 5));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + 3 * round));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const ExpertProfile p = read_expert_profile(path);
    bool whole = false;
    for (int seed = 0; seed < 5; ++seed) whole = whole || p == example(48, 512, seed);
    EXPECT_TRUE(whole) << round;
  }
}

}  // namespace
}  // namespace strata::memory
