#include "strata/gguf/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "strata/base/error.h"
#include "strata/gguf/test_files.h"
#include "tests/support/temp_folder.h"

namespace strata::gguf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace strata::gguf::testing;

template <class Action>
std::string message(Action action) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

// Reads a file and writes what was read.
Bytes copy(const Model& model) {
  Writer writer;
  for (const KeyValue& entry : model.metadata().entries()) writer.add(entry.key, entry.value);
  for (const Tensor& tensor : model.tensors()) {
    writer.declare(tensor.name, tensor.type->type, tensor.shape());
  }
  io::MemoryOutput out;
  writer.begin(out);
  for (const Tensor& tensor : model.tensors()) writer.append(model.read(tensor));
  writer.finish();
  return out.take();
}

TEST(GgufWriter, ACopyOfTheTinyModelIsTheSameByteForByte) {
  EXPECT_EQ(copy(open_bytes(tiny_file())), tiny_file());
}

TEST(GgufWriter, ACopyOfEveryKindOfValueIsTheSameByteForByte) {
  EXPECT_EQ(copy(open_bytes(small_file())), small_file());
}

TEST(GgufWriter, ShapesAreTurnedForTheFile) {
  Writer writer;
  writer.declare("t", quant::Type::kF32, {2, 3, 5});
  const Bytes file = write_bytes(writer);
  const auto fields = fields_of(file);
  EXPECT_EQ(peek(file, find_field(fields, "t extent 0").at, 8), 5u);
  EXPECT_EQ(peek(file, find_field(fields, "t extent 2").at, 8), 2u);
  EXPECT_THAT(open_bytes(file).get("t").shape(), ElementsAre(2, 3, 5));
}

TEST(GgufWriter, DataInPiecesOfAnySize) {
  const Model model = open_bytes(small_file());
  Writer writer;
  for (const Tensor& tensor : model.tensors()) {
    writer.declare(tensor.name, tensor.type->type, tensor.shape());
  }
  io::MemoryOutput out;
  writer.begin(out);
  for (const Tensor& tensor : model.tensors()) {
    const Bytes bytes = model.read(tensor);
    EXPECT_EQ(writer.pending_bytes(), bytes.size());
    writer.append(std::span(bytes).first(1));
    writer.append({});
    writer.append(std::span(bytes).subspan(1));
  }
  writer.finish();
  EXPECT_EQ(writer.pending_bytes(), 0u);
  const Model back = open_bytes(out.take());
  for (const Tensor& tensor : model.tensors()) {
    EXPECT_EQ(back.read(back.get(tensor.name)), model.read(tensor)) << tensor.name;
  }
}

TEST(GgufWriter, WritesAFileAtomically) {
  const strata::testing::TempFolder folder;
  const std::string path = folder.path("out.gguf");
  io::write_atomically(path, [](io::Output& out) {
    Writer writer;
    writer.add("general.architecture", std::string("a"));
    writer.declare("x", quant::Type::kI8, {3});
    writer.begin(out);
    writer.append(std::as_bytes(std::span("abc", 3)));
    writer.finish();
  });
  const Model model = Model::open(path);
  EXPECT_EQ(model.read(model.get("x"))[2], std::byte{'c'});
}

TEST(GgufWriter, RefusesWhatAReaderWouldRefuse) {
  Writer writer;
  writer.add("k", 1);
  EXPECT_THAT(message([&] { writer.add("k", 2); }), HasSubstr("the key k is there twice"));
  EXPECT_THAT(message([&] { writer.add("", 2); }), HasSubstr("a key of 0 bytes"));
  writer.declare("t", quant::Type::kF32, {1});
  EXPECT_THAT(message([&] { writer.declare("t", quant::Type::kF32, {1}); }), HasSubstr("twice"));
  EXPECT_THAT(message([&] { writer.declare("", quant::Type::kF32, {1}); }), HasSubstr("name"));
  EXPECT_THAT(message([&] { writer.declare("u", quant::Type::kF32, {}); }), HasSubstr("dim"));
  EXPECT_THAT(message([&] {
                writer.declare("v", quant::Type::kF32, {2, 0});
              }),
              HasSubstr("extent"));
  EXPECT_THAT(message([&] {
                writer.declare("w", quant::Type::kF32, {1, 1, 1, 1, 1});
              }),
              HasSubstr("1 to 4"));
  EXPECT_THAT(message([&] {
                writer.declare("x", quant::Type::kQ4_0, {2, 33});
              }),
              HasSubstr("no whole blocks of Q4_0"));
  constexpr int64_t kHuge = int64_t{1} << 62;
  EXPECT_THAT(message([&] {
                writer.declare("y", quant::Type::kF32, {kHuge, 2});
              }),
              HasSubstr("too large"));
  EXPECT_THAT(message([&] {
                writer.declare("z", quant::Type::kF32, {kHuge, kHuge, 2});
              }),
              HasSubstr("too large"));
  EXPECT_THAT(message([] { Writer(48); }), HasSubstr("48"));
}

TEST(GgufWriter, RefusesDataThatDoesNotFit) {
  const Bytes bytes(9);
  io::MemoryOutput out;
  Writer writer;
  writer.declare("a", quant::Type::kI8, {8});
  writer.begin(out);
  EXPECT_THAT(message([&] { writer.append(bytes); }), HasSubstr("tensor a takes 8 bytes more"));
  writer.append(std::span(bytes).first(7));
  EXPECT_THAT(message([&] { writer.finish(); }), HasSubstr("tensor a still lacks 1 bytes"));
  writer.append(std::span(bytes).first(1));
  EXPECT_THAT(message([&] { writer.append(bytes); }), HasSubstr("more data than tensors"));
  writer.finish();
}

TEST(GgufWriter, NamesOfShards) { EXPECT_EQ(shard_path("/a/m", 0, 3), "/a/m-00001-of-00003.gguf"); }

}  // namespace
}  // namespace strata::gguf
