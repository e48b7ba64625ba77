#include "strata/base/error.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "strata/base/format.h"

namespace strata {
namespace {

TEST(Error, ContextStandsOutermostFirst) {
  Error error(ErrorCode::kCorruptFile, format("tensor {} ends at byte {} of {}", "t", 912, 800));
  error.with("reading the tensor table").with("loading m.gguf");
  EXPECT_STREQ(error.what(),
               "loading m.gguf: reading the tensor table: tensor t ends at byte 912 of 800");
  EXPECT_EQ(error.message(), "tensor t ends at byte 912 of 800");
  EXPECT_EQ(exit_code(error.code()), 65);
}

TEST(Error, EachExitStatusIsThereOnce) {
  int last = 0;
  for (const ExitStatus& each : exit_statuses()) {
    EXPECT_GT(each.status, last);
    EXPECT_FALSE(each.words.empty());
    last = each.status;
  }
  EXPECT_EQ(exit_statuses().size(), 7u);
  EXPECT_EQ(words(ErrorCode::kDeviceLost), "a device was lost");
}

// The table of docs/architecture.md: "| `kIo` | 74 | 500 |".
TEST(Error, TheWrittenTableSaysTheSame) {
  std::ifstream file(std::string(STRATA_SOURCE_DIR) + "/docs/architecture.md");
  std::stringstream page;
  page << file.rdbuf();
  for (const ErrorCode code :
       {ErrorCode::kInvalidArgument, ErrorCode::kCorruptFile, ErrorCode::kNotFound,
        ErrorCode::kUnsupported, ErrorCode::kDevice, ErrorCode::kDeviceLost, ErrorCode::kInternal,
        ErrorCode::kResourceExhausted, ErrorCode::kIo}) {
    std::string row = "| `k";
    bool upper = true;
    for (const char c : name(code)) {
      if (c != '_') row += upper ? static_cast<char>(c - 'a' + 'A') : c;
      upper = c == '_';
    }
    const size_t at = page.str().find(row + "`");
    ASSERT_NE(at, std::string::npos) << row;
    const std::string cells = page.str().substr(at, page.str().find('\n', at) - at);
    const size_t cell = cells.find(" | ") + 3;
    EXPECT_EQ(std::stoi(cells.substr(cell)), exit_code(code)) << cells;
  }
}

}  // namespace
}  // namespace strata
