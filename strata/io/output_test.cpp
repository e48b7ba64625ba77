#include "strata/io/output.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

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
