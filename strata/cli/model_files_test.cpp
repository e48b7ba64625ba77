#include "strata/cli/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "strata/base/error.h"

namespace strata::cli {
namespace {

namespace fs = std::filesystem;

// A model of its own for each test.
class ModelFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    fs::copy_file(original_, path_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::string complaint(const ModelFiles& files) {
    try {
      files.require_unchanged();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kCorruptFile);
      return e.what();
    }
    return "";
  }

  const fs::path original_ = fs::path(STRATA_SOURCE_DIR) / "tests/golden/qwen4exp/tiny.gguf";
  const fs::path folder_ =
      fs::path(::testing::TempDir()) /
      ("model_files_" +
       std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
  const fs::path path_ = folder_ / "m.gguf";
};

TEST_F(ModelFilesTest, TheSameFileIsNoChange) {
  const ModelFiles files(gguf::Model::open(path_.string()));
  EXPECT_EQ(complaint(files), "");
  const gguf::Model again = gguf::Model::open(path_.string(), {.access = io::Access::kPlain});
  EXPECT_EQ(ModelFiles(again).text(), files.text());
  EXPECT_NO_THROW(require_files(again, files.text()));
  EXPECT_NO_THROW(require_files(again, ""));
}

TEST_F(ModelFilesTest, AnotherFileInItsPlaceIsOne) {
  const ModelFiles files(gguf::Model::open(path_.string()));
  // The same bytes, the same time.
  fs::copy_file(original_, folder_ / "new");
  fs::last_write_time(folder_ / "new", fs::last_write_time(path_));
  fs::rename(folder_ / "new", path_);
  EXPECT_EQ(complaint(files), kModelChanged);
  EXPECT_THROW(require_files(gguf::Model::open(path_.string()), files.text()), Error);
}

TEST_F(ModelFilesTest, ANewTimeOrSizeIsOne) {
  const ModelFiles files(gguf::Model::open(path_.string()));
  const auto time = fs::last_write_time(path_);
  fs::last_write_time(path_, time + std::chrono::nanoseconds(1000));
  EXPECT_EQ(complaint(files), kModelChanged);
  fs::last_write_time(path_, time);
  EXPECT_EQ(complaint(files), "");
  fs::resize_file(path_, fs::file_size(path_) - 1);
  fs::last_write_time(path_, time);
  EXPECT_EQ(complaint(files), kModelChanged);
}

TEST_F(ModelFilesTest, NoFileIsOne) {
  const ModelFiles files(gguf::Model::open(path_.string()));
  fs::remove(path_);
  EXPECT_EQ(complaint(files), kModelChanged);
  fs::create_directory(path_);
  EXPECT_EQ(complaint(files), kModelChanged);
}

}  // namespace
}  // namespace strata::cli
