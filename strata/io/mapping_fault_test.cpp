#include "strata/io/mapping_fault.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "strata/io/mapped_file.h"
#include "tests/support/temp_folder.h"

namespace strata::io {
namespace {

// Reads a page that the file has lost since it was mapped.
void read_what_is_gone(const std::string& path) {
  std::ofstream(path, std::ios::binary) << std::string(1 << 20, 'a');
  const MappedFile file = MappedFile::open(path);
  std::filesystem::resize_file(path, 0);
  const volatile std::byte* bytes = file.mapped().data();
  static_cast<void>(bytes[file.size() - 1]);
}

TEST(MappingFault, AFileThatShrinksEndsTheProcessWithALineAndTheStatus) {
  const strata::testing::TempFolder folder;
  const std::string path = folder.path("file");
  EXPECT_EXIT(
      {
        exit_on_mapping_fault(74);
        read_what_is_gone(path);
      },
      ::testing::ExitedWithCode(74), "^strata: a mapped file has become shorter[^\n]*\n$");
}

TEST(MappingFault, OtherBusErrorsStaySignals) {
  EXPECT_EXIT(
      {
        exit_on_mapping_fault(74);
        std::raise(SIGBUS);
      },
      ::testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace strata::io
