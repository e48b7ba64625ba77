#include "strata/io/direct_reader.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "strata/base/error.h"
#include "strata/io/file.h"
#include "strata/io/os/read_queue.h"
#include "tests/support/temp_folder.h"

namespace strata::io {
namespace {

using Way = DirectReader::Way;

std::byte byte_at(uint64_t i) { return static_cast<std::byte>(i * 7 + i / 251); }

// A file whose bytes tell where they are.
std::string make_file(const std::string& path, size_t n) {
  std::vector<char> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<char>(byte_at(i));
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(n));
  return path;
}

// Buffers at whole blocks.
struct Buffers {
  explicit Buffers(size_t n, size_t each) : bytes_each(each) {
    const size_t all = n * each;
    at = static_cast<std::byte*>(std::aligned_alloc(DirectReader::kBlock, all));
  }
  ~Buffers() { std::free(at); }
  std::span<std::byte> operator[](size_t i) const { return {at + i * bytes_each, bytes_each}; }
  std::byte* at;
  size_t bytes_each;
};

class Reader : public ::testing::TestWithParam<Way> {};

TEST_P(Reader, ReadsAnyStretchesManyAtATime) {
  const testing::TempFolder folder;
  constexpr size_t kBytes = 300'001, kMost = 70'000;
  constexpr int kDepth = 5;
  const File file = File::open(make_file(folder.path("a"), kBytes));
  DirectReader reader(kDepth, GetParam());
  if (reader.way() != GetParam()) GTEST_SKIP() << "this system lets nobody use io_uring";
  reader.add(file);
  const Buffers buffers(kDepth, DirectReader::buffer_bytes(kMost));
  std::mt19937 random(3);
  std::map<uint64_t, DirectReader::Read> under_way;
  std::vector<size_t> free = {0, 1, 2, 3, 4};
  uint64_t bytes = 0;
  int started = 0, done = 0;
  while (done < 200) {
    while (!free.empty() && started < 200) {
      const size_t n = 1 + random() % kMost;
      // Some end at the end of the file, some begin at its start.
      const uint64_t offset = started % 5 == 0   ? kBytes - n
                              : started % 5 == 1 ? 0
                                                 : random() % (kBytes - n);
      const DirectReader::Read read{
          .offset = offset, .bytes = n, .buffer = buffers[free.back()], .tag = free.back()};
      free.pop_back();
      under_way[read.tag] = read;
      reader.start(read);
      bytes += n;
      ++started;
    }
    for (const DirectReader::Done& d : reader.collect(std::chrono::seconds(20))) {
      const DirectReader::Read read = under_way.at(d.tag);
      ASSERT_EQ(d.error, "");
      ASSERT_EQ(d.bytes.size(), read.bytes);
      for (size_t i = 0; i < d.bytes.size(); ++i) {
        ASSERT_EQ(d.bytes[i], byte_at(read.offset + i)) << read.offset << " + " << i;
      }
      free.push_back(static_cast<size_t>(d.tag));
      ++done;
    }
  }
  EXPECT_EQ(reader.counters().reads, 200U);
  EXPECT_EQ(reader.counters().bytes, bytes);
  EXPECT_GE(reader.counters().device_bytes, bytes);
  EXPECT_EQ(reader.n_under_way(), 0);
  EXPECT_TRUE(reader.collect(std::chrono::milliseconds(0)).empty());
}

TEST_P(Reader, AFileThatBecameShorterIsAnErrorOfThatRead) {
  const testing::TempFolder folder;
  const std::string path = make_file(folder.path("a"), 50'000);
  const File file = File::open(path);
  DirectReader reader(2, GetParam());
  reader.add(file);
  std::filesystem::resize_file(path, 20'000);
  const Buffers buffers(2, DirectReader::buffer_bytes(10'000));
  reader.start({.offset = 15'000, .bytes = 10'000, .buffer = buffers[0], .tag = 7});
  reader.start({.offset = 5'000, .bytes = 10'000, .buffer = buffers[1], .tag = 8});
  int n = 0;
  while (n < 2) {
    for (const DirectReader::Done& d : reader.collect(std::chrono::seconds(20))) {
      EXPECT_EQ(d.error.empty(), d.tag == 8) << d.error;
      if (d.tag == 7) {
        EXPECT_NE(d.error.find("15000"), std::string::npos) << d.error;
      }
      ++n;
    }
  }
  EXPECT_EQ(reader.counters().reads, 1U);
}

// What was opened is what is read: a file renamed over it is another one.
TEST_P(Reader, AnotherFileInItsPlaceIsRefused) {
  const testing::TempFolder folder;
  const std::string path = make_file(folder.path("a"), 5'000);
  const File file = File::open(path);
  make_file(folder.path("b"), 5'000);
  std::filesystem::rename(folder.path("b"), path);
  DirectReader reader(1, GetParam());
  EXPECT_THROW(reader.add(file), Error);
  std::filesystem::remove(path);
  EXPECT_THROW(reader.add(file), Error);
}

// Breaks reads off in the ways a system may, in turn, and does the rest on threads.
class CapriciousQueue final : public os::ReadQueue {
 public:
  explicit CapriciousQueue(int depth) : threads_(os::make_thread_queue(depth)) {}
  void submit(const strata::os::Descriptor& file, uint64_t offset, std::span<std::byte> out,
              uint64_t tag) override {
    ++submitted;
    const int turn = submitted % 4;
    if (turn == 0) return results_.push_back({.tag = tag, .bytes = -EAGAIN});
    if (turn == 1) return results_.push_back({.tag = tag, .bytes = -EINTR});
    if (turn == 2) out = out.first(std::min(out.size(), DirectReader::kBlock));
    threads_->submit(file, offset, out, tag);
  }
  bool next(Result& result, std::chrono::milliseconds limit) override {
    if (results_.empty()) return threads_->next(result, limit);
    result = results_.back();
    results_.pop_back();
    return true;
  }
  int submitted = 0;

 private:
  std::unique_ptr<os::ReadQueue> threads_;
  std::vector<Result> results_;
};

TEST(DirectReader, ReadsThatAreBrokenOffAreAskedForAgain) {
  const testing::TempFolder folder;
  constexpr size_t kBytes = 100'000;
  const File file = File::open(make_file(folder.path("a"), kBytes));
  auto queue = std::make_unique<CapriciousQueue>(3);
  const CapriciousQueue& used = *queue;
  DirectReader reader(3, std::move(queue));
  reader.add(file);
  const Buffers buffers(1, DirectReader::buffer_bytes(kBytes));
  for (uint64_t at : {0U, 777U, 90'000U}) {
    const size_t n = std::min<size_t>(kBytes - at, 50'000);
    reader.start({.file = 0, .offset = at, .bytes = n, .buffer = buffers[0], .tag = 9});
    std::vector<DirectReader::Done> done;
    while (done.empty()) done = reader.collect(std::chrono::milliseconds(100));
    ASSERT_EQ(done[0].error, "");
    ASSERT_EQ(done[0].bytes.size(), n);
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(done[0].bytes[i], byte_at(at + i)) << at + i;
  }
  EXPECT_GT(used.submitted, 10);
}

INSTANTIATE_TEST_SUITE_P(Ways, Reader, ::testing::Values(Way::kUring, Way::kThreads),
                         [](const auto& instance) {
                           return instance.param == Way::kUring ? "uring" : "threads";
                         });

}  // namespace
}  // namespace strata::io
