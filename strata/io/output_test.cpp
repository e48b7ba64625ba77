#include "strata/io/output.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/base/error.h"
#include "tests/support/temp_folder.h"

namespace strata::io {
namespace {

using strata::testing::read_file;
using strata::testing::TempFolder;

std::string text_of(const std::string& path) {
  const auto bytes = read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

size_t n_entries(const TempFolder& folder) {
  size_t n = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    n += entry.exists() ? 1 : 0;
  }
  return n;
}

TEST(WriteAtomically, WritesAndReplaces) {
  const TempFolder folder;
  const std::string path = folder.path("out");
  write_atomically(path, std::as_bytes(std::span(std::string_view("first"))));
  EXPECT_EQ(text_of(path), "first");
  write_atomically(path, [](Output& out) {
    out.write("sec");
    out.write("ond");
    EXPECT_EQ(out.n_written(), 6u);
  });
  EXPECT_EQ(text_of(path), "second");
  EXPECT_EQ(n_entries(folder), 1u);
}

TEST(WriteAtomically, AFailureKeepsTheOldFileAndLeavesNothing) {
  const TempFolder folder;
  const std::string path = folder.write("out", "old");
  const auto fill = [](Output& out) {
    out.write(std::string(1'000'000, 'x'));
    throw std::runtime_error("stop");
  };
  EXPECT_THROW(write_atomically(path, fill), std::runtime_error);
  EXPECT_EQ(text_of(path), "old");
  EXPECT_EQ(n_entries(folder), 1u);
}

// F-010: a disk with room for a part only. A limit on the size of files stands for it.
TEST(WriteAtomically, F010_AFullDiskIsSaidAndLeavesNoPart) {
  const TempFolder folder;
  const std::string path = folder.write("pack", "old");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {4 << 20, before.rlim_max};
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  try {
    write_atomically(path, [](Output& out) {
      for (int i = 0; i < 8; ++i) out.write(std::string(1 << 20, 'x'));
    });
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kIo);
    message = e.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_NE(message.find(path), std::string::npos) << message;
  EXPECT_NE(message.find("File too large"), std::string::npos) << message;
  EXPECT_EQ(text_of(path), "old");
  EXPECT_EQ(n_entries(folder), 1u);
}

// F-010: killed half-way. The path never holds a part, and the next writer clears the rest away.
TEST(WriteAtomically, F010_AKilledWriterLeavesNothingThatIsRead) {
  const TempFolder folder;
  const std::string path = folder.path("pack");
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile file(path);
    file.write(std::string(1 << 20, 'x'));
    char byte = 1;
    if (::write(ready[1], &byte, 1) == 1) ::pause();
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  // As long as it lives nobody touches its file.
  write_atomically(folder.path("pack"), std::as_bytes(std::span(std::string_view("mine"))));
  EXPECT_EQ(n_entries(folder), 2u);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(text_of(path), "mine");
  write_atomically(folder.path("other"), std::as_bytes(std::span(std::string_view("other"))));
  EXPECT_EQ(n_entries(folder), 3u);  // it belongs to another name
  write_atomically(path, std::as_bytes(std::span(std::string_view("again"))));
  EXPECT_EQ(text_of(path), "again");
  EXPECT_EQ(n_entries(folder), 2u);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(WriteAtomically, PiecesOfEverySizeArriveInOrder) {
  const TempFolder folder;
  std::string want;
  write_atomically(folder.path("out"), [&](Output& out) {
    for (size_t n : {1, 1000, 300'000, 5, 262'144, 262'145, 0, 7}) {
      const std::string piece(n, static_cast<char>('a' + want.size() % 26));
      want += piece;
      out.write(piece);
    }
  });
  EXPECT_EQ(text_of(folder.path("out")), want);
}

TEST(WriteAtomically, AMissingFolderIsNotFoundByName) {
  const TempFolder folder;
  try {
    write_atomically(folder.path("no/out"), [](Output&) {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kNotFound);
    EXPECT_NE(std::string(e.what()).find(folder.path("no/out")), std::string::npos) << e.what();
  }
}

TEST(WriteAtomically, AFolderOfThatNameIsAnErrorAndLeavesNothing) {
  const TempFolder folder;
  std::filesystem::create_directory(folder.path("out"));
  EXPECT_THROW(write_atomically(folder.path("out"), [](Output&) {}), Error);
  EXPECT_EQ(n_entries(folder), 1u);
}

TEST(WriteAtomically, TheLongestNameAndTheWorkingFolder) {
  const TempFolder folder;
  const std::string name(255, 'n');
  write_atomically(folder.path(name), [](Output& out) { out.write("x"); });
  EXPECT_EQ(text_of(folder.path(name)), "x");

  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  write_atomically("here", [](Output& out) { out.write("y"); });
  std::filesystem::current_path(before);
  EXPECT_EQ(text_of(folder.path("here")), "y");
}

TEST(WriteAtomically, TheModeFollowsTheUmask) {
  const TempFolder folder;
  const auto old = ::umask(027);
  write_atomically(folder.path("out"), [](Output&) {});
  ::umask(old);
  struct stat facts {};
  ASSERT_EQ(::stat(folder.path("out").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777u, 0640u);
}

TEST(MemoryOutput, Collects) {
  MemoryOutput out;
  out.write("ab");
  out.write("c");
  EXPECT_EQ(out.n_written(), 3u);
  EXPECT_EQ(out.bytes().size(), 3u);
  EXPECT_EQ(out.take()[2], std::byte{'c'});
}

}  // namespace
}  // namespace strata::io
