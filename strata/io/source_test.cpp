#include "strata/io/source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "strata/base/error.h"
#include "strata/io/faulty_source.h"
#include "strata/io/file.h"
#include "strata/io/mapped_file.h"
#include "tests/support/temp_folder.h"

namespace strata::io {
namespace {

using strata::testing::TempFolder;

std::vector<std::byte> numbered(size_t n) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  return bytes;
}

std::vector<std::byte> read(const ByteSource& source, uint64_t offset, size_t n) {
  std::vector<std::byte> out(n);
  source.read_at(offset, out);
  return out;
}

template <class Action>
std::string message(ErrorCode code, Action action) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

class SourceTest : public ::testing::TestWithParam<Access> {
 protected:
  TempFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Accesses, SourceTest, ::testing::Values(Access::kMapped, Access::kPlain),
                         [](const auto& test) {
                           return test.param == Access::kMapped ? "Mapped" : "Plain";
                         });

TEST_P(SourceTest, ReadsEveryRange) {
  const auto bytes = numbered(10'000);
  const auto source = open_source(folder_.write("a", bytes), GetParam());
  EXPECT_EQ(source->size(), bytes.size());
  EXPECT_EQ(source->name(), folder_.path("a"));
  for (const uint64_t offset : {0, 1, 4095, 4096, 9999}) {
    for (const size_t n : {size_t{1}, size_t{100}, bytes.size() - offset}) {
      if (offset + n > bytes.size()) continue;
      const auto got = read(*source, offset, n);
      EXPECT_EQ(std::memcmp(got.data(), bytes.data() + offset, n), 0) << offset << " " << n;
    }
  }
  EXPECT_NO_THROW(read(*source, bytes.size(), 0));
}

TEST_P(SourceTest, ARangeBeyondTheEndNamesFileOffsetWantedAndSize) {
  const auto source = open_source(folder_.write("short.bin", numbered(100)), GetParam());
  const auto text = message(ErrorCode::kIo, [&] { read(*source, 90, 11); });
  for (const auto* part : {"short.bin", "90", "11 bytes", "100"}) {
    EXPECT_TRUE(contains(text, part)) << text;
  }
  message(ErrorCode::kIo, [&] { read(*source, 101, 1); });
  // offset + size wraps around.
  message(ErrorCode::kIo, [&] { read(*source, UINT64_MAX - 4, 10); });
}

TEST_P(SourceTest, AFileCutAfterOpeningIsAnErrorNotASignal) {
  const auto source = open_source(folder_.write("cut", numbered(100'000)), GetParam());
  std::filesystem::resize_file(folder_.path("cut"), 50'000);
  EXPECT_NO_THROW(read(*source, 0, 50'000));
  const auto text = message(ErrorCode::kIo, [&] { read(*source, 49'990, 100); });
  for (const auto* part : {"cut", "49990", "wanted 100", "got 10", "100000"}) {
    EXPECT_TRUE(contains(text, part)) << text;
  }
}

TEST_P(SourceTest, AnEmptyFileIsASourceOfNoBytes) {
  const auto source = open_source(folder_.write("empty", ""), GetParam());
  EXPECT_EQ(source->size(), 0u);
  EXPECT_TRUE(source->mapped().empty());
  EXPECT_NO_THROW(read(*source, 0, 0));
  message(ErrorCode::kIo, [&] { read(*source, 0, 1); });
}

TEST_P(SourceTest, WhatIsNoFileIsRefusedByName) {
  const auto missing =
      message(ErrorCode::kNotFound, [&] { open_source(folder_.path("nope"), GetParam()); });
  EXPECT_TRUE(contains(missing, folder_.path("nope"))) << missing;
  const auto folder =
      message(ErrorCode::kInvalidArgument, [&] { open_source(folder_.path(), GetParam()); });
  EXPECT_TRUE(contains(folder, "folder")) << folder;
  // A pipe nobody writes to must not block.
  ASSERT_EQ(::mkfifo(folder_.path("pipe").c_str(), 0600), 0);
  message(ErrorCode::kInvalidArgument, [&] { open_source(folder_.path("pipe"), GetParam()); });
  message(ErrorCode::kInvalidArgument, [&] { open_source("/dev/zero", GetParam()); });
  // A file is no folder: what lies "in" it does not exist.
  folder_.write("plain", "x");
  message(ErrorCode::kNotFound, [&] { open_source(folder_.path("plain/x"), GetParam()); });
}

TEST_P(SourceTest, F099_OffsetsBeyondFourGigabytes) {
  const std::string path = folder_.path("sparse");
  constexpr uint64_t kSize = 5ull << 30;
  const std::vector<uint64_t> offsets = {
      0,          (1ull << 31) - 1, 1ull << 31, (1ull << 31) + 1, (1ull << 32) - 1,
      1ull << 32, (1ull << 32) + 1, kSize - 8};
  { std::ofstream create(path, std::ios::binary); }
  std::filesystem::resize_file(path, kSize);
  for (const uint64_t offset : offsets) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    const char mark = static_cast<char>(1 + offset % 251);
    file.write(&mark, 1);
    ASSERT_TRUE(file.good());
  }
  const auto source = open_source(path, GetParam());
  ASSERT_EQ(source->size(), kSize);
  for (const uint64_t offset : offsets) {
    const auto want = static_cast<std::byte>(1 + offset % 251);
    EXPECT_EQ(read(*source, offset, 1)[0], want) << offset;
    if (GetParam() == Access::kMapped) {
      EXPECT_EQ(source->mapped()[offset], want) << offset;
    }
  }
  message(ErrorCode::kIo, [&] { read(*source, kSize - 7, 8); });
}

TEST_P(SourceTest, F121_NamesInEveryScriptAndLength) {
  std::vector<std::string> names = {"модель.gguf",
                                    "模型\u3000モデル.gguf",
                                    "\xF0\x9F\xA6\x99.gguf",
                                    "e\u0301a\u0308.gguf",
                                    "with space 'single' \"double\" %s %n 100%.gguf",
                                    "line\nbreak\ttab.gguf",
                                    "not\xff\xfeutf8.gguf",
                                    std::string(245, 'n') + ".gguf"};
  for (const std::string& name : names) {
    const auto source = open_source(folder_.write(name, name), GetParam());
    EXPECT_EQ(source->name(), folder_.path(name));
    EXPECT_EQ(source->size(), name.size());
    const auto text =
        message(ErrorCode::kNotFound, [&] { open_source(folder_.path(name) + "x", GetParam()); });
    EXPECT_TRUE(contains(text, name)) << text;
  }
  std::string deep = folder_.path();
  while (deep.size() < 2000) deep += "/" + std::string(200, 'd');
  std::filesystem::create_directories(deep);
  std::ofstream(deep + "/f") << "deep";
  EXPECT_EQ(open_source(deep + "/f", GetParam())->size(), 4u);

  std::filesystem::create_symlink(names[0], folder_.path("link"));
  EXPECT_EQ(open_source(folder_.path("link"), GetParam())->size(), names[0].size());
}

TEST_P(SourceTest, ThreadsReadAtTheSameTime) {
  const auto bytes = numbered(1 << 20);
  const auto source = open_source(folder_.write("a", bytes), GetParam());
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 200; ++i) {
        const uint64_t offset = (i * 4999 + t * 31) % (bytes.size() - 5000);
        const auto got = read(*source, offset, 5000);
        wrong[t] += std::memcmp(got.data(), bytes.data() + offset, 5000) != 0;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST(MappedFile, TheMappingHoldsTheFileAndOutlivesAMove) {
  const TempFolder folder;
  const auto bytes = numbered(20'000);
  MappedFile file = MappedFile::open(folder.write("a", bytes));
  const auto* address = file.mapped().data();
  MappedFile moved = std::move(file);
  ASSERT_EQ(moved.mapped().size(), bytes.size());
  EXPECT_EQ(moved.mapped().data(), address);
  EXPECT_EQ(std::memcmp(moved.mapped().data(), bytes.data(), bytes.size()), 0);
  EXPECT_EQ(read(moved, 19'999, 1)[0], bytes[19'999]);
}

TEST(MappedFile, ReleasedAndAdvisedRangesReadTheSame) {
  const TempFolder folder;
  const auto bytes = numbered(50'001);
  const MappedFile file = MappedFile::open(folder.write("a", bytes));
  using Advice = MappedFile::Advice;
  for (const auto advice :
       {Advice::kSequential, Advice::kRandom, Advice::kWillNeed, Advice::kNormal}) {
    file.advise(advice);
    file.advise(advice, 5000, 10);
    file.advise(advice, 50'000, UINT64_MAX);
    file.advise(advice, UINT64_MAX, 1);
  }
  file.release(0, bytes.size());
  file.release(1, 3);  // no whole page
  file.release(40'000, UINT64_MAX, true);
  file.release(UINT64_MAX, UINT64_MAX);
  EXPECT_EQ(std::memcmp(file.mapped().data(), bytes.data(), bytes.size()), 0);
}

// Resident bytes of the mapping, from the kernel's own account.
size_t resident_bytes(const std::string& path) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool inside = false;
  while (std::getline(maps, line)) {
    if (contains(line, path)) inside = true;
    if (inside && line.starts_with("Rss:")) return std::stoul(line.substr(4)) * 1024;
  }
  return 0;
}

TEST(MappedFile, ReleaseGivesThePagesBack) {
  const TempFolder folder;
  const std::string path = folder.write("a", numbered(1 << 20));
  const MappedFile file = MappedFile::open(path);
  unsigned sum = 0;
  for (size_t i = 0; i < file.size(); i += 512) sum += static_cast<unsigned>(file.mapped()[i]);
  EXPECT_GT(sum, 0u);
  ASSERT_EQ(resident_bytes(path), file.size());
  file.release(0, file.size() / 2 + 100);
  EXPECT_EQ(resident_bytes(path), file.size() / 2);
  file.release(0, file.size());
  EXPECT_EQ(resident_bytes(path), 0u);
}

TEST(FaultySource, FailsTheNthRead) {
  const FaultySource source(std::make_unique<MemorySource>("m", numbered(100)),
                            {{.nth_read = 1, .fault = FaultySource::Fault::kFail}});
  EXPECT_NO_THROW(read(source, 0, 10));
  const auto text = message(ErrorCode::kIo, [&] { read(source, 20, 10); });
  EXPECT_TRUE(contains(text, "m: reading 10 bytes at 20")) << text;
  EXPECT_NO_THROW(read(source, 20, 10));
  EXPECT_EQ(source.n_reads(), 3u);
}

TEST(FaultySource, ShortReadsAreContinued) {
  const auto bytes = numbered(100);
  const FaultySource source(
      std::make_unique<MemorySource>("m", bytes),
      {{.nth_read = 0, .fault = FaultySource::Fault::kShort, .lasting = true}});
  EXPECT_EQ(read(source, 0, 100), bytes);
  EXPECT_EQ(source.n_reads(), 100u);
}

TEST(FaultySource, AnEarlyEndNamesWantedAndGot) {
  const FaultySource source(std::make_unique<MemorySource>("m", numbered(100)),
                            {{.nth_read = 0, .fault = FaultySource::Fault::kShort},
                             {.nth_read = 1, .fault = FaultySource::Fault::kEnd}});
  const auto text = message(ErrorCode::kIo, [&] { read(source, 3, 10); });
  EXPECT_TRUE(contains(text, "m: wanted 10 bytes at 3, got 1")) << text;
}

TEST(FaultySource, HidesTheMappingUnlessAsked) {
  const FaultySource hidden(std::make_unique<MemorySource>("m", numbered(9)), {});
  EXPECT_TRUE(hidden.mapped().empty());
  const FaultySource kept(std::make_unique<MemorySource>("m", numbered(9)), {}, true);
  EXPECT_EQ(kept.mapped().size(), 9u);
}

static_assert(!std::is_copy_constructible_v<File> && std::is_move_constructible_v<File>);
static_assert(!std::is_copy_constructible_v<MappedFile> &&
              std::is_move_constructible_v<MappedFile>);

}  // namespace
}  // namespace strata::io
