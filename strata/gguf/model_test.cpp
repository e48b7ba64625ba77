#include "strata/gguf/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "strata/base/error.h"
#include "strata/gguf/test_files.h"
#include "strata/io/faulty_source.h"
#include "tests/support/temp_folder.h"

namespace strata::gguf {
namespace {

using strata::testing::TempFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace strata::gguf::testing;

constexpr io::Access kAccesses[] = {io::Access::kMapped, io::Access::kPlain};

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

TEST(Gguf, ReadsTheTinyModel) {
  for (const io::Access access : kAccesses) {
    const TempFolder folder;
    const Model model = Model::open(folder.write("tiny.gguf", tiny_file()), {.access = access});
    EXPECT_EQ(model.metadata().get_string("general.architecture"), "qwen4exp");
    EXPECT_EQ(model.metadata().get_u64("qwen4exp.block_count"), 5u);
    EXPECT_EQ(model.metadata().get_strings("tokenizer.ggml.tokens").size(), 512u);
    ASSERT_EQ(model.tensors().size(), 145u);
    EXPECT_EQ(model.tensors()[0].name, "token_embd.weight");

    const Tensor& experts = model.get("blk.0.ffn_gate_exps.weight");
    EXPECT_THAT(experts.shape(), ElementsAre(16, 32, 64));  // the file has {64, 32, 16}
    EXPECT_EQ(experts.type->name, "F32");
    EXPECT_EQ(experts.n_values, 16u * 32 * 64);
    EXPECT_EQ(experts.n_bytes, 4u * 16 * 32 * 64);
    EXPECT_EQ(experts.n_rows(), 16 * 32);
    EXPECT_EQ(experts.row_bytes(), 4u * 64);
    // From the header: data starts at 24480, the table says 446720.
    EXPECT_EQ(experts.offset, 24480u + 446720u);

    const auto bytes = model.read(experts);
    EXPECT_EQ(std::memcmp(bytes.data(), tiny_file().data() + experts.offset, bytes.size()), 0);
    EXPECT_EQ(model.is_mapped(), access == io::Access::kMapped);
    if (model.is_mapped()) {
      EXPECT_EQ(std::memcmp(model.bytes(experts).data(), bytes.data(), bytes.size()), 0);
    }
    std::vector<std::byte> part(10);
    model.read(experts, experts.n_bytes - 10, part);
    EXPECT_EQ(std::memcmp(part.data(), bytes.data() + bytes.size() - 10, 10), 0);
    message(ErrorCode::kInvalidArgument, [&] { model.read(experts, experts.n_bytes - 9, part); });
    message(ErrorCode::kInvalidArgument, [&] { model.read(experts, UINT64_MAX, part); });
  }
}

TEST(Gguf, MissingTensorsAndFilesAreNamed) {
  const Model model = open_bytes(small_file());
  EXPECT_EQ(model.find("nope"), nullptr);
  EXPECT_THAT(message(ErrorCode::kCorruptFile, [&] { model.get("blk.9.\nx"); }),
              HasSubstr("test.gguf: the tensor blk.9.\\nx is missing"));
  EXPECT_THAT(message(ErrorCode::kNotFound, [] { Model::open("/no/such.gguf"); }),
              HasSubstr("/no/such.gguf"));
}

TEST(Gguf, ViewsOutliveAMove) {
  Model model = open_bytes(small_file());
  const Tensor* tensor = model.find("four");
  const std::string_view name = model.metadata().entries()[0].key;
  const Model moved = std::move(model);
  EXPECT_EQ(moved.find("four"), tensor);
  EXPECT_EQ(tensor->name, "four");
  EXPECT_EQ(name, "general.architecture");
  EXPECT_EQ(moved.metadata().get_string("general.architecture"), "small");
}

TEST(Gguf, OpensProjectorAndDraftFiles) {
  // Nothing of a trunk in them: another architecture, or tensors of the last block alone.
  Writer projector;
  projector.add("general.architecture", "clip");
  projector.add("general.type", "mmproj");
  projector.declare("mm.0.weight", quant::Type::kBF16, {8, 8});
  EXPECT_EQ(open_bytes(write_bytes(projector)).tensors().size(), 1u);

  Writer draft;
  draft.add("general.architecture", "qwen4exp");
  draft.add("qwen4exp.block_count", 49);
  draft.add("qwen4exp.nextn_predict_layers", 1);
  draft.declare("blk.48.nextn.enorm.weight", quant::Type::kF32, {64});
  const Model model = open_bytes(write_bytes(draft));
  EXPECT_EQ(model.metadata().get_u64("qwen4exp.nextn_predict_layers"), 1u);
  EXPECT_NE(model.find("blk.48.nextn.enorm.weight"), nullptr);
}

TEST(Gguf, AFileOfKeysAlone) {
  Writer writer;
  writer.add("general.architecture", "none");
  const Model model = open_bytes(write_bytes(writer));
  EXPECT_TRUE(model.tensors().empty());
  EXPECT_EQ(model.metadata().entries().size(), 1u);
}

TEST(Gguf, AHeaderAloneIsEnoughToLookAt) {
  const TempFolder folder;
  Bytes header = tiny_file();
  header.resize(24480);
  const std::string path = folder.write("header.gguf", header);
  for (const io::Access access : kAccesses) {
    const Model model = Model::open(path, {.access = access, .header_only = true});
    EXPECT_FALSE(model.has_data());
    EXPECT_FALSE(model.is_mapped());
    const Tensor& experts = model.get("blk.0.ffn_gate_exps.weight");
    EXPECT_EQ(experts.n_bytes, 4u * 16 * 32 * 64);
    EXPECT_EQ(experts.offset, 24480u + 446720u);
    EXPECT_THROW(model.read(experts), Error);
    EXPECT_THAT(message(ErrorCode::kCorruptFile, [&] { Model::open(path, {.access = access}); }),
                HasSubstr("planned with"));
  }
  // Data that broke off is no header alone.
  header.resize(24480 + 100);
  const std::string cut = folder.write("cut.gguf", header);
  EXPECT_THAT(message(ErrorCode::kCorruptFile, [&] { Model::open(cut, {.header_only = true}); }),
              HasSubstr("are missing"));
  const Model complete = Model::open(folder.write("tiny.gguf", tiny_file()), {.header_only = true});
  EXPECT_TRUE(complete.has_data());
}

TEST(Gguf, Version2IsReadToo) {
  Bytes file = small_file();
  patch(file, 4, 2, 4);
  EXPECT_EQ(open_bytes(std::move(file)).shards()[0].version, 2u);
}

TEST(Gguf, OtherAlignments) {
  for (const uint32_t alignment : {1u, 8u, 64u, 4096u}) {
    Writer writer(alignment);
    writer.declare("a", quant::Type::kI8, {3});
    writer.declare("b", quant::Type::kI8, {5});
    const Model model = open_bytes(write_bytes(writer));
    EXPECT_EQ(model.shards()[0].alignment, alignment);
    EXPECT_EQ(model.get("a").offset % alignment, 0u);
    EXPECT_EQ(model.get("b").offset - model.get("a").offset, std::max(3u, alignment));
  }
  for (const uint32_t alignment : {0u, 3u, 48u, 1u << 21}) {
    Writer writer;
    writer.add("general.alignment", alignment);
    const Bytes file = write_bytes(writer);
    EXPECT_THAT(message(ErrorCode::kCorruptFile, [&] { open_bytes(file); }),
                HasSubstr("general.alignment is " + std::to_string(alignment)));
  }
}

TEST(Gguf, EveryReadFaultIsAnIoErrorNamingTheFile) {
  const auto faulty = [](uint64_t nth, io::FaultySource::Fault fault, bool lasting) {
    std::vector<std::unique_ptr<io::ByteSource>> sources;
    sources.push_back(std::make_unique<io::FaultySource>(
        source_of(tiny_file(), "tiny.gguf"),
        std::vector<io::FaultySource::Rule>{{nth, fault, lasting}}));
    return sources;
  };
  uint64_t n_reads = 0;
  {
    auto sources = faulty(1000, io::FaultySource::Fault::kFail, false);
    const auto* source = static_cast<const io::FaultySource*>(sources[0].get());
    const Model model = Model::from_sources(std::move(sources));
    n_reads = source->n_reads();
    EXPECT_FALSE(model.is_mapped());
  }
  ASSERT_GE(n_reads, 2u);
  for (const auto fault : {io::FaultySource::Fault::kFail, io::FaultySource::Fault::kEnd}) {
    for (uint64_t nth = 0; nth < n_reads; ++nth) {
      EXPECT_THAT(message(ErrorCode::kIo, [&] { Model::from_sources(faulty(nth, fault, false)); }),
                  HasSubstr("tiny.gguf"));
    }
    const Model model = Model::from_sources(faulty(n_reads, fault, false));
    EXPECT_THAT(message(ErrorCode::kIo, [&] { model.read(model.get("blk.2.ssm_a")); }),
                HasSubstr("reading tensor blk.2.ssm_a: tiny.gguf"));
  }
}

TEST(Gguf, ShortReadsChangeNothing) {
  std::vector<std::unique_ptr<io::ByteSource>> sources;
  sources.push_back(std::make_unique<io::FaultySource>(
      source_of(small_file()),
      std::vector<io::FaultySource::Rule>{{0, io::FaultySource::Fault::kShort, true}}));
  const Model model = Model::from_sources(std::move(sources));
  EXPECT_EQ(model.metadata().get_u64("a.u16"), 60'000u);
  EXPECT_EQ(model.read(model.get("last")).size(), 34u);
}

TEST(Gguf, F099_TensorsBeyondFourGigabytes) {
  Writer writer;
  writer.declare("before", quant::Type::kI8, {5, 1 << 30});
  writer.declare("after", quant::Type::kI8, {32});
  io::MemoryOutput out;
  writer.begin(out);
  const TempFolder folder;
  const std::string path = folder.write("sparse.gguf", out.bytes());
  constexpr uint64_t kData = 5ull << 30;
  const uint64_t start = out.bytes().size();
  std::filesystem::resize_file(path, start + kData + 32);
  const uint64_t places[] = {0,
                             (1ull << 31) - 1,
                             1ull << 31,
                             (1ull << 31) + 1,
                             (1ull << 32) - 1,
                             1ull << 32,
                             (1ull << 32) + 1,
                             kData - 1,
                             kData};
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    for (const uint64_t place : places) {
      file.seekp(static_cast<std::streamoff>(start + place));
      file.put(static_cast<char>(place % 253 + 1));
    }
  }
  for (const io::Access access : kAccesses) {
    const Model model = Model::open(path, {.access = access});
    const Tensor& before = model.get("before");
    EXPECT_EQ(before.n_bytes, kData);
    EXPECT_EQ(model.get("after").offset, start + kData);
    std::byte byte{};
    for (const uint64_t place : places) {
      const Tensor& tensor = place == kData ? model.get("after") : before;
      const uint64_t at = place == kData ? 0 : place;
      model.read(tensor, at, {&byte, 1});
      EXPECT_EQ(byte, static_cast<std::byte>(place % 253 + 1)) << place;
      if (model.is_mapped()) {
        EXPECT_EQ(model.bytes(tensor)[at], byte) << place;
      }
    }
  }
}

TEST(Gguf, F121_PathsOfEveryScript) {
  const TempFolder folder;
  for (const std::string name : {"модель", "模型\u3000", "\xF0\x9F\xA6\x99", "a b'c\"d%s"}) {
    std::filesystem::create_directory(folder.path(name));
    const std::string path = folder.write(name + "/" + name + ".gguf", small_file());
    EXPECT_EQ(Model::open(path).shards()[0].path, path);
    EXPECT_EQ(Model::open(folder.path(name)).shards()[0].path, path);
    const Model model = Model::open(path);
    const auto shards = split_model(model, {2, 3});
    std::filesystem::remove(path);
    folder.write(name + "/" + name + "-00001-of-00002.gguf", shards[0]);
    EXPECT_THAT(message(ErrorCode::kNotFound, [&] { Model::open(folder.path(name)); }),
                HasSubstr(folder.path(name) + "/" + name + "-00002-of-00002.gguf"));
    folder.write(name + "/" + name + "-00002-of-00002.gguf", shards[1]);
    EXPECT_EQ(Model::open(folder.path(name)).tensors().size(), 5u);
  }
}

}  // namespace
}  // namespace strata::gguf
