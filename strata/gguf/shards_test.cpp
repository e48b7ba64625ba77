#include "strata/gguf/shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "strata/base/error.h"
#include "strata/gguf/model.h"
#include "strata/gguf/test_files.h"
#include "tests/support/temp_folder.h"

namespace strata::gguf {
namespace {

using strata::testing::TempFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace strata::gguf::testing;

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

std::string open_message(ErrorCode code, const std::string& path) {
  return message(code, [&] { Model::open(path); });
}

// The tiny model in shards of 0 (keys alone), 100 and 45 tensors.
const std::vector<Bytes>& tiny_shards() {
  static const auto shards = split_model(open_bytes(tiny_file()), {0, 100, 45});
  return shards;
}

void expect_is_tiny(const Model& model) {
  const Model tiny = open_bytes(tiny_file());
  ASSERT_EQ(model.tensors().size(), 145u);
  ASSERT_EQ(model.shards().size(), 3u);
  EXPECT_EQ(model.metadata().get_string("general.name"), "tiny");
  EXPECT_EQ(model.shards()[0].n_tensors, 0u);
  EXPECT_EQ(model.shards()[1].n_tensors, 100u);
  for (const Tensor& tensor : tiny.tensors()) {
    const Tensor& got = model.get(tensor.name);
    EXPECT_EQ(got.n_bytes, tensor.n_bytes);
    EXPECT_EQ(got.shard, &tensor - tiny.tensors().data() < 100 ? 1 : 2);
    EXPECT_EQ(model.read(got), tiny.read(tensor)) << tensor.name;
  }
}

class ShardsTest : public ::testing::Test {
 protected:
  std::string shard(int no) const { return folder_.path(name(no)); }
  static std::string name(int no) { return shard_path("tiny", no, 3); }
  void write(int no) const { folder_.write(name(no), tiny_shards()[static_cast<size_t>(no)]); }

  TempFolder folder_;
};

TEST_F(ShardsTest, F002_AllMissingAndEmptyShardsInOneMessage) {
  write(0);
  write(2);
  for (const std::string& path : {shard(0), shard(1), shard(2), folder_.path()}) {
    EXPECT_THAT(open_message(ErrorCode::kNotFound, path),
                AllOf(HasSubstr("1 of the 3 shards"), HasSubstr(shard(1) + " (missing)"),
                      Not(HasSubstr(name(0))), Not(HasSubstr(name(2)))));
  }
  folder_.write(name(2), "");
  for (const std::string& path : {shard(0), shard(1), shard(2), folder_.path()}) {
    EXPECT_THAT(open_message(ErrorCode::kNotFound, path),
                AllOf(HasSubstr("2 of the 3 shards"), HasSubstr(shard(1) + " (missing)"),
                      HasSubstr(shard(2) + " (empty)")));
  }
  std::filesystem::remove(shard(2));
  EXPECT_THAT(open_message(ErrorCode::kNotFound, shard(0)),
              AllOf(HasSubstr(shard(1) + " (missing)"), HasSubstr(shard(2) + " (missing)")));
  EXPECT_NE(exit_code(ErrorCode::kNotFound), exit_code(ErrorCode::kCorruptFile));
}

TEST_F(ShardsTest, TheListOfMissingShardsHasAnEnd) {
  const std::string text =
      open_message(ErrorCode::kNotFound, folder_.path("m-00001-of-99999.gguf"));
  EXPECT_THAT(text, AllOf(HasSubstr("99999 of the 99999 shards"), HasSubstr("... 99899 more")));
}

TEST_F(ShardsTest, F003_JoinedShardsAreExplained) {
  const auto two = split_model(open_bytes(tiny_file()), {100, 45});
  Bytes joined = two[0];
  joined.insert(joined.end(), two[1].begin(), two[1].end());
  for (const auto* file : {"joined.gguf", "m-00001-of-00002.gguf"}) {
    EXPECT_THAT(
        open_message(ErrorCode::kCorruptFile, folder_.write(file, joined)),
        AllOf(HasSubstr("shard 1 of 2 with trailing data"), HasSubstr("another GGUF file begins"),
              HasSubstr("Shards must stay separate files")));
  }
  // A first shard of keys alone, and two whole files.
  joined = tiny_shards()[0];
  joined.insert(joined.end(), two[1].begin(), two[1].end());
  EXPECT_THAT(open_message(ErrorCode::kCorruptFile, folder_.write("j.gguf", joined)),
              HasSubstr("shard 1 of 3 with trailing data"));
  joined = small_file();
  joined.insert(joined.end(), two[1].begin(), two[1].end());
  EXPECT_THAT(open_message(ErrorCode::kCorruptFile, folder_.write("j.gguf", joined)),
              HasSubstr("has trailing data"));
}

TEST_F(ShardsTest, F004_AnyShardOrTheFolderIsTheSameModel) {
  for (const int no : {2, 1, 0}) write(no);
  for (const std::string& path : {shard(0), shard(1), shard(2), folder_.path()}) {
    for (const io::Access access : {io::Access::kMapped, io::Access::kPlain}) {
      expect_is_tiny(Model::open(path, {.access = access}));
    }
  }
}

TEST_F(ShardsTest, F004_EveryOrderOfTheSources) {
  std::vector<size_t> order = {0, 1, 2};
  do {
    std::vector<std::unique_ptr<io::ByteSource>> sources;
    for (const size_t no : order) sources.push_back(source_of(tiny_shards()[no]));
    expect_is_tiny(Model::from_sources(std::move(sources)));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(ShardsTest, F004_TheKeysDecideNotTheNames) {
  // Names that lie about the order.
  for (int no = 0; no < 3; ++no) {
    folder_.write(name(no), tiny_shards()[static_cast<size_t>(2 - no)]);
  }
  for (const std::string& path : {shard(0), shard(1), shard(2), folder_.path()}) {
    expect_is_tiny(Model::open(path));
  }
}

TEST_F(ShardsTest, F004_RenamedShardsAreFound) {
  const std::string first = folder_.write("head.gguf", tiny_shards()[0]);
  const std::string second = folder_.write("x-00007-of-00009.gguf", tiny_shards()[1]);
  const std::string third = folder_.write("experts.gguf", tiny_shards()[2]);
  folder_.write("notes.txt", "not a model");
  for (const std::string& path : {first, second, third}) expect_is_tiny(Model::open(path));
  std::filesystem::remove(second);
  EXPECT_THAT(open_message(ErrorCode::kNotFound, first),
              AllOf(HasSubstr("3 shards, 1 of which are missing"), HasSubstr("shard 2 of 3")));
  expect_is_tiny([&] {
    folder_.write("second.gguf", tiny_shards()[1]);
    return Model::open(folder_.path());
  }());
}

TEST_F(ShardsTest, TwoFilesForOnePlaceAreRefused) {
  folder_.write("a.gguf", tiny_shards()[0]);
  folder_.write("b.gguf", tiny_shards()[1]);
  folder_.write("c.gguf", tiny_shards()[2]);
  folder_.write("d.gguf", tiny_shards()[2]);
  EXPECT_THAT(open_message(ErrorCode::kCorruptFile, folder_.path("a.gguf")),
              AllOf(HasSubstr("c.gguf"), HasSubstr("d.gguf"), HasSubstr("both say"),
                    HasSubstr("shard 3 of 3")));
}

TEST_F(ShardsTest, WrongCountsAreRefused) {
  const Model tiny = open_bytes(tiny_file());
  const auto other = split_model(open_bytes(small_file()), {1, 2, 2});
  write(0);
  write(1);
  folder_.write(name(2), other[2]);
  EXPECT_THAT(open_message(ErrorCode::kCorruptFile, shard(0)),
              AllOf(HasSubstr(name(2)), HasSubstr("no shards of one model")));

  const auto with_split = [](uint16_t no, uint16_t count, int32_t n_tensors) {
    Writer writer;
    writer.add_split(no, count, n_tensors);
    writer.declare("t", quant::Type::kI8, {4});
    return write_bytes(writer);
  };
  EXPECT_THAT(message(ErrorCode::kCorruptFile, [&] { open_bytes(with_split(3, 3, 1)); }),
              HasSubstr("split.no is 3 (from 0) and split.count 3"));
  EXPECT_THAT(message(ErrorCode::kNotFound, [&] { open_bytes(with_split(1, 2, 1)); }),
              HasSubstr("shard 1 of 2"));
  // Joined by a tool that leaves the keys behind.
  EXPECT_EQ(open_bytes(with_split(0, 0, 1)).tensors().size(), 1u);
  EXPECT_EQ(open_bytes(with_split(0, 1, 1)).tensors().size(), 1u);

  std::vector<std::unique_ptr<io::ByteSource>> sources;
  sources.push_back(source_of(with_split(0, 2, 3)));
  {
    Writer writer;
    writer.add_split(1, 2, 3);
    writer.declare("u", quant::Type::kI8, {4});
    sources.push_back(source_of(write_bytes(writer)));
  }
  EXPECT_THAT(message(ErrorCode::kCorruptFile, [&] { Model::from_sources(std::move(sources)); }),
              HasSubstr("split.tensors.count is 3, but the 2 shards have 2"));

  sources.clear();
  sources.push_back(source_of(with_split(0, 2, 2), "one.gguf"));
  sources.push_back(source_of(with_split(1, 2, 2), "two.gguf"));
  EXPECT_THAT(message(ErrorCode::kCorruptFile, [&] { Model::from_sources(std::move(sources)); }),
              HasSubstr("two.gguf: tensor t is also in one.gguf"));
}

TEST_F(ShardsTest, AFolderHasToHoldOneModel) {
  EXPECT_THAT(open_message(ErrorCode::kNotFound, folder_.path()), HasSubstr("no .gguf file"));
  const std::string model = folder_.write("model.gguf", small_file());
  EXPECT_EQ(Model::open(folder_.path()).tensors().size(), 5u);
  Writer projector;
  projector.add("general.architecture", "clip");
  folder_.write("mmproj.gguf", write_bytes(projector));
  EXPECT_EQ(Model::open(folder_.path()).shards()[0].path, model);
  folder_.write("other.gguf", tiny_file());
  EXPECT_THAT(open_message(ErrorCode::kInvalidArgument, folder_.path()),
              AllOf(HasSubstr("2 models"), HasSubstr("/model.gguf"), HasSubstr("/other.gguf"),
                    Not(HasSubstr("mmproj"))));
}

TEST_F(ShardsTest, ShardsOfADownloadCacheAreLinks) {
  std::filesystem::create_directory(folder_.path("blobs"));
  std::filesystem::create_directory(folder_.path("snapshot"));
  for (int no = 0; no < 3; ++no) {
    const std::string blob = "blobs/" + std::to_string(no);
    folder_.write(blob, tiny_shards()[static_cast<size_t>(no)]);
    std::filesystem::create_symlink("../" + blob, folder_.path("snapshot/" + name(no)));
  }
  expect_is_tiny(Model::open(folder_.path("snapshot/" + name(1))));
}

TEST_F(ShardsTest, ADamagedShardIsNamed) {
  for (const int no : {0, 1, 2}) write(no);
  std::filesystem::resize_file(shard(1), tiny_shards()[1].size() - 5000);
  EXPECT_THAT(open_message(ErrorCode::kCorruptFile, shard(0)),
              AllOf(HasSubstr(shard(1)), HasSubstr("are missing")));
}

TEST(ShardPath, OnlyTheUsualForm) {
  const auto name = parse_shard_path("/m/a-b-00002-of-00003.gguf");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->base, "/m/a-b");
  EXPECT_EQ(name->no, 1);
  EXPECT_EQ(name->count, 3);
  for (const auto* path :
       {"a.gguf", "-00001-of-00001.gguf", "a-00000-of-00003.gguf", "a-00004-of-00003.gguf",
        "a-0001-of-00003.gguf", "a-00001-of-00003", "a-00001-of-00003.gguf.part",
        "a-0000x-of-00003.gguf", "a-+0001-of-00003.gguf", "a-00001_of_00003.gguf", ""}) {
    EXPECT_FALSE(parse_shard_path(path)) << path;
  }
}

}  // namespace
}  // namespace strata::gguf
