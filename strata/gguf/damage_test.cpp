// Files that are damaged, hostile or something else: each ends in one clear error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/gguf/model.h"
#include "strata/gguf/test_files.h"
#include "tests/support/temp_folder.h"

namespace strata::gguf {
namespace {

using strata::testing::TempFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace strata::gguf::testing;

std::optional<Error> error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    return e;
  }
  return {};
}

std::string message(ErrorCode code, const Bytes& file) {
  const auto error = error_of([&] { open_borrowed(file); });
  if (!error) {
    ADD_FAILURE() << "no error";
    return "";
  }
  EXPECT_EQ(error->code(), code) << error->what();
  return error->what();
}

std::string corrupt(const Bytes& file) { return message(ErrorCode::kCorruptFile, file); }

Bytes patched(Bytes file, std::string_view field, uint64_t value) {
  const auto fields = fields_of(file);
  const Field& found = find_field(fields, field);
  patch(file, found.at, value, found.n_bytes);
  return file;
}

Bytes cut(const Bytes& file, size_t n) {
  return {file.begin(), file.begin() + static_cast<long>(n)};
}

TEST(Gguf, F001_TruncatedFileIsRefused) {
  const Bytes& tiny = tiny_file();
  const Model model = open_bytes(tiny);
  const auto fields = fields_of(tiny);
  const Tensor& expert = model.get("blk.4.ffn_down_exps.weight");
  const size_t in_table = find_field(fields, "blk.2.ssm_norm.weight type").at;
  const struct {
    size_t n_bytes;
    std::vector<std::string> parts;
  } cuts[] = {
      {3, {"not a GGUF file"}},
      {7, {"version", "needs 4 bytes", "(7 in all)"}},
      {20, {"number of keys", "(20 in all)"}},
      {1000, {"145 tensors", "at least 33 bytes each", "(1000 in all)", "cut off"}},
      {find_field(fields, "tokenizer.ggml.eos_token_id type").at + 2,
       {"key 47 (tokenizer.ggml.eos_token_id)", "needs 4 bytes", "ends after 2"}},
      {in_table, {"(blk.2.ssm_norm.weight)", "needs 4 bytes", "ends after 0"}},
      {model.shards()[0].header_bytes, {"token_embd.weight", "3645472"}},
      {expert.offset + expert.n_bytes / 2,
       {"tensor blk.4.ffn_down_exps.weight (F32 [16, 64, 32])",
        format("bytes {} to {}", expert.offset, expert.offset + expert.n_bytes),
        format("which has {}", expert.offset + expert.n_bytes / 2), "of 3645472 are missing"}},
      {tiny.size() - 1, {"blk.4.nextn.hc_head_up.weight", "which has 3645471", "1 bytes of"}},
  };
  const TempFolder folder;
  for (const auto& [n_bytes, parts] : cuts) {
    const std::string path = folder.write("cut.gguf", cut(tiny, n_bytes));
    for (const io::Access access : {io::Access::kMapped, io::Access::kPlain}) {
      const auto error = error_of([&] { Model::open(path, {.access = access}); });
      ASSERT_TRUE(error) << n_bytes;
      EXPECT_EQ(error->code(), ErrorCode::kCorruptFile) << error->what();
      EXPECT_THAT(error->what(), HasSubstr(path));
      for (const std::string& part : parts) EXPECT_THAT(error->what(), HasSubstr(part));
    }
  }
}

// Every length of a small file: never a crash, never a load.
TEST(Gguf, F001_EveryCutOfASmallFileIsRefused) {
  const Bytes file = small_file();
  // What follows the last tensor is padding, which a tool may have left off.
  const Model whole = open_bytes(file);
  const size_t needed = whole.get("last").offset + whole.get("last").n_bytes;
  for (size_t n = 0; n < file.size(); ++n) {
    const auto error = error_of([&] { open_bytes(cut(file, n)); });
    if (n >= needed) {
      EXPECT_FALSE(error) << n;
      continue;
    }
    ASSERT_TRUE(error) << n;
    EXPECT_EQ(error->code(), ErrorCode::kCorruptFile) << n << ": " << error->what();
  }
}

TEST(Gguf, F005_ProductsThatOverflowAreRefused) {
  const std::string name = "blk.0.attn_gate.weight";
  Bytes file = patched(tiny_file(), name + " extent 0", INT64_MAX);
  file = patched(file, name + " extent 1", 2);
  EXPECT_THAT(corrupt(file),
              AllOf(HasSubstr(name), HasSubstr("[2, 9223372036854775807]"), HasSubstr("2^63")));

  file = patched(tiny_file(), name + " extent 0", (1ull << 42) + 1);
  EXPECT_THAT(corrupt(file), AllOf(HasSubstr(name), HasSubstr("[96, 4398046511105]")));
  file = patched(tiny_file(), name + " extent 1", (1ull << 42) + 1);
  EXPECT_THAT(corrupt(file), AllOf(HasSubstr(name), HasSubstr("[4398046511105, 64]")));

  // The values fit into 63 bits, their bytes do not.
  file = patched(tiny_file(), name + " extent 1", (1ull << 57) - 1);
  EXPECT_THAT(corrupt(file), AllOf(HasSubstr(name), HasSubstr("more bytes")));
  // Each extent fits, two of them do, three do not.
  const std::string experts = "blk.0.ffn_up_exps.weight";
  file = tiny_file();
  for (const char* extent : {" extent 0", " extent 1", " extent 2"}) {
    file = patched(file, experts + extent, 1ull << 31);
  }
  EXPECT_THAT(corrupt(file), AllOf(HasSubstr(experts), HasSubstr("2^63")));
  // The bytes fit, the place does not.
  file = patched(tiny_file(), name + " offset", UINT64_MAX - 31);
  EXPECT_THAT(corrupt(file), AllOf(HasSubstr(name), HasSubstr("offset 18446744073709551584")));
  file = patched(tiny_file(), name + " offset", (1ull << 63) - 64);
  EXPECT_THAT(corrupt(file), HasSubstr(name));
}

TEST(Gguf, F006_ZeroExtentsEmptyAndDoubleNamesAreRefused) {
  EXPECT_THAT(corrupt(patched(tiny_file(), "blk.1.ple_key.weight extent 1", 0)),
              AllOf(HasSubstr("(blk.1.ple_key.weight)"), HasSubstr("dimension 1 of 2 is 0")));

  const Bytes file = small_file();
  const auto fields = fields_of(file);
  // "a.u8" and "a.i8" have names of equal length: one becomes the other.
  Bytes twice = file;
  std::memcpy(twice.data() + find_field(fields, "key 2 length").at + 8, "a.u8", 4);
  EXPECT_THAT(corrupt(twice), AllOf(HasSubstr("key 2 (a.u8)"), HasSubstr("twice")));

  // A key without letters: the length is 0, the letters are gone.
  Bytes empty = file;
  const size_t at = find_field(fields, "key 3 length").at;
  patch(empty, at, 0, 8);
  empty.erase(empty.begin() + static_cast<long>(at) + 8,
              empty.begin() + static_cast<long>(at) + 13);
  EXPECT_THAT(corrupt(empty), AllOf(HasSubstr("key 3"), HasSubstr("no letters")));

  const Bytes& tiny = tiny_file();
  Bytes same = tiny;
  const auto tiny_fields = fields_of(tiny);
  const std::string from = "blk.3.attn_k.weight";
  const std::string to = "blk.3.attn_v.weight";
  const auto it =
      std::search(same.begin(), same.end(), reinterpret_cast<const std::byte*>(to.data()),
                  reinterpret_cast<const std::byte*>(to.data()) + to.size());
  ASSERT_NE(it, same.end());
  std::memcpy(&*it, from.data(), from.size());
  EXPECT_THAT(corrupt(same), AllOf(HasSubstr(from), HasSubstr("twice")));
}

// Time of the processor, not of the clock: other work on the machine does not count.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

size_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("VmHWM:")) return std::stoul(line.substr(6)) * 1024;
  }
  return 0;
}

void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

// Address sanitizer keeps freed memory back, so that its figures say nothing.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kMeasuresMemory = false;
#else
constexpr bool kMeasuresMemory = true;
#endif

// Every count, length and type of the header, in turn with each bad value. The token strings are
// too many and all alike: of those a few.
TEST(Gguf, F007_HeaderMutationsEndInAnError) {
  Bytes file = tiny_file();
  const auto fields = fields_of(file);
  reset_peak();
  const size_t before = peak_bytes();
  size_t n_mutations = 0;
  double slowest = 0;
  for (const Field& field : fields) {
    const bool is_token = field.what.starts_with("tokenizer.ggml.tokens ") ||
                          field.what.starts_with("tokenizer.ggml.merges ");
    if (is_token && field.at % 64 != 0) continue;
    std::vector<uint64_t> values;
    switch (field.kind) {
      case Field::Kind::kCount:
      case Field::Kind::kLength:
        values = {0, 1, 1ull << 31, UINT32_MAX, 1ull << 63};
        break;
      case Field::Kind::kType:
        values = {255};
        break;
      case Field::Kind::kExtent:
        values = {0, 1ull << 31, UINT32_MAX, 1ull << 63};
        break;
      case Field::Kind::kOffset:
        values = {1, 1ull << 31, UINT32_MAX, 1ull << 63};
        break;
    }
    const uint64_t right = peek(file, field.at, field.n_bytes);
    for (const uint64_t value : values) {
      patch(file, field.at, value, field.n_bytes);
      if (peek(file, field.at, field.n_bytes) == right) continue;
      ++n_mutations;
      const double start = cpu_seconds();
      const auto error = error_of([&] { open_borrowed(file); });
      const double took = cpu_seconds() - start;
      slowest = std::max(slowest, took);
      ASSERT_TRUE(error) << field.what << " = " << value;
      ASSERT_TRUE(error->code() == ErrorCode::kCorruptFile ||
                  error->code() == ErrorCode::kUnsupported)
          << field.what << " = " << value << ": " << error->what();
    }
    patch(file, field.at, right, field.n_bytes);
  }
  EXPECT_GT(n_mutations, 1000u);
  EXPECT_LT(slowest, 1.0);
  if (kMeasuresMemory) {
    EXPECT_LT(peak_bytes() - before, 50u << 20);
  }
}

TEST(Gguf, F007_ArraysNestedAThousandDeepAreRefused) {
  Bytes file = small_file();
  const auto fields = fields_of(file);
  // In the place of the last key's value: arrays of one array.
  const size_t at = find_field(fields, "l.empty element type").at;
  Bytes nested(12 * 1000);
  for (size_t i = 0; i < 1000; ++i) {
    patch(nested, 12 * i, 9, 4);
    patch(nested, 12 * i + 4, 1, 8);
  }
  file.insert(file.begin() + static_cast<long>(at), nested.begin(), nested.end());
  EXPECT_THAT(corrupt(file), AllOf(HasSubstr("(l.empty)"), HasSubstr("nested more than 4 deep")));
}

TEST(Gguf, F007_ManySmallArraysAreBounded) {
  // Arrays cost the reader more than the 12 bytes that they take in the file.
  Array empty;
  Array outer;
  outer.element = ValueType::kArray;
  outer.size = 100'000;
  outer.arrays.resize(outer.size, empty);
  Writer writer;
  writer.add("many", Value(std::move(outer)));
  EXPECT_THAT(corrupt(write_bytes(writer)), HasSubstr("more than 65536 arrays inside arrays"));
}

// A count or length that the size of the file allows still takes no memory in advance.
TEST(Gguf, F007_LargeClaimsOfASparseFileTakeNoMemory) {
  const TempFolder folder;
  const auto check = [&](std::string_view field, uint64_t value) {
    const std::string path = folder.write("sparse.gguf", patched(small_file(), field, value));
    std::filesystem::resize_file(path, 100ull << 30);
    reset_peak();
    const size_t before = peak_bytes();
    const double start = cpu_seconds();
    const auto error = error_of([&] { Model::open(path, {.access = io::Access::kPlain}); });
    const double took = cpu_seconds() - start;
    ASSERT_TRUE(error) << field;
    EXPECT_EQ(error->code(), ErrorCode::kCorruptFile) << error->what();
    EXPECT_LT(took, 1.0) << field;
    if (kMeasuresMemory) {
      EXPECT_LT(peak_bytes() - before, 50u << 20) << field;
    }
  };
  check("n_keys", 1u << 31);
  check("n_keys", 60'000);
  check("n_tensors", 1u << 31);
  check("n_tensors", 130'000);
  check("key 0 length", 1u << 31);
  check("key 0 length", 60'000);
  check("general.architecture length", 1ull << 36);
  check("l.u64 count", 1ull << 32);
  check("l.strings count", 1ull << 31);
  check("tensor 0 length", 1u << 20);
}

// The mutations that the fuzzer starts from.
TEST(Gguf, F007_SeedsOfTheFuzzerEndInAModelOrAnError) {
  size_t n_seeds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(STRATA_SEED_DIR "/gguf")) {
    const std::string name = entry.path().filename().string();
    const auto error = error_of([&] { open_bytes(strata::testing::read_file(entry.path())); });
    EXPECT_EQ(!error, name.starts_with("valid")) << name;
    ++n_seeds;
  }
  EXPECT_GE(n_seeds, 40u);
}

TEST(Gguf, F008_OtherFilesAreRecognised) {
  const struct {
    ErrorCode code;
    std::string bytes;
    std::string part;
  } files[] = {
      {ErrorCode::kCorruptFile, "", "empty (0 bytes)"},
      {ErrorCode::kCorruptFile, "<!DOCTYPE html><html>", "web page"},
      {ErrorCode::kCorruptFile, "\n  <html lang=en>", "web page"},
      {ErrorCode::kCorruptFile, "version https://git-lfs.github.com/spec/v1\noid sha256:0",
       "git lfs pull"},
      {ErrorCode::kCorruptFile, "PK\x03\x04 and so on", "ZIP archive"},
      {ErrorCode::kCorruptFile, "\x1f\x8b\x08 and so on", "gzip"},
      {ErrorCode::kCorruptFile, "{\"error\": \"not found\"}", "JSON"},
      {ErrorCode::kCorruptFile, std::string("\x40\0\0\0\0\0\0\0{\"a\":1}", 16), "safetensors"},
      {ErrorCode::kCorruptFile, "\x80\x02}q", "pickle"},
      {ErrorCode::kCorruptFile, std::string(4096, '\0'), "zeros only"},
      {ErrorCode::kCorruptFile, std::string(257, 'a') + "ustar\0", "tar archive"},
      {ErrorCode::kCorruptFile, "tjgg\3\0\0\0", "before GGUF"},
      {ErrorCode::kCorruptFile, "\x1b[2Jhello this is a text of some length", "\\x1b[2J"},
      {ErrorCode::kCorruptFile, "GGU", "too short"},
      {ErrorCode::kUnsupported, std::string("FUGG\0\0\0\3", 8) + std::string(100, 'x'),
       "byte order"},
      {ErrorCode::kUnsupported, std::string("GGUF\0\0\0\3", 8) + std::string(100, 'x'),
       "byte order"},
      {ErrorCode::kUnsupported, std::string("GGUF\1\0\0\0", 8) + std::string(100, 'x'),
       "version 1"},
      {ErrorCode::kUnsupported, std::string("GGUF\x63\0\0\0", 8) + std::string(100, 'x'),
       "version 99"},
      {ErrorCode::kCorruptFile, std::string("GGUF\0\0\0\0", 8) + std::string(100, 'x'),
       "version 0"},
  };
  for (const auto& [code, bytes, part] : files) {
    const auto view = std::as_bytes(std::span(bytes));
    EXPECT_THAT(message(code, {view.begin(), view.end()}),
                AllOf(HasSubstr("test.gguf"), HasSubstr(part)));
  }
}

TEST(Gguf, TensorTypesThatAreNotHandledAreNamed) {
  EXPECT_THAT(message(ErrorCode::kUnsupported, patched(tiny_file(), "blk.0.ssm_a type", 255)),
              AllOf(HasSubstr("(blk.0.ssm_a)"), HasSubstr("type 255 is not known")));
  EXPECT_THAT(message(ErrorCode::kUnsupported, patched(tiny_file(), "blk.0.ssm_a type", 34)),
              AllOf(HasSubstr("(blk.0.ssm_a)"), HasSubstr("TQ1_0")));
}

TEST(Gguf, RowsThatAreNoWholeBlocksAreRefused) {
  EXPECT_THAT(corrupt(patched(tiny_file(), "blk.0.attn_gate.weight type", 12)),
              AllOf(HasSubstr("(blk.0.attn_gate.weight)"), HasSubstr("rows of 64 values"),
                    HasSubstr("256"), HasSubstr("Q4_K")));
}

TEST(Gguf, MisplacedTensorsAreRefused) {
  const Model model = open_bytes(tiny_file());
  const std::string name = "blk.0.attn_gate.weight";
  const uint64_t right =
      peek(tiny_file(), find_field(fields_of(tiny_file()), name + " offset").at, 8);
  EXPECT_THAT(corrupt(patched(tiny_file(), name + " offset", right + 4)),
              AllOf(HasSubstr(name), HasSubstr("multiple of the alignment 32")));
  EXPECT_THAT(corrupt(patched(tiny_file(), name + " offset", right - 32)),
              AllOf(HasSubstr("tensor " + name), HasSubstr("inside tensor blk.0.attn_qkv.weight")));
  EXPECT_THAT(corrupt(patched(tiny_file(), name + " offset", right + 32)),
              AllOf(HasSubstr("32 bytes after tensor blk.0.attn_qkv.weight"),
                    HasSubstr("belong to no tensor; tensor " + name)));
  EXPECT_THAT(corrupt(patched(tiny_file(), name + " offset", 0)), HasSubstr("inside tensor"));
  EXPECT_THAT(corrupt(patched(tiny_file(), name + " offset", 1ull << 30)),
              AllOf(HasSubstr("tensor " + name), HasSubstr("are missing")));
  // Smaller than its place: somebody's idea of the type or the shape is wrong.
  EXPECT_THAT(corrupt(patched(tiny_file(), name + " extent 1", 48)),
              AllOf(HasSubstr("tensor " + name), HasSubstr("belong to no tensor")));
}

TEST(Gguf, TrailingBytesAreRefused) {
  Bytes file = tiny_file();
  file.resize(file.size() + 32);
  EXPECT_THAT(corrupt(file), AllOf(HasSubstr("32 bytes after the end of the last tensor"),
                                   HasSubstr("should have 3645472")));
}

// A file whose one Q2_0 tensor has the other branch's blocks of 128 values in 34 bytes.
Bytes other_q2(bool is_last) {
  Writer writer;
  writer.declare("before", quant::Type::kF32, {4});
  writer.declare("two.weight", quant::Type::kQ2_0, {16, 256});
  if (!is_last) writer.declare("after", quant::Type::kF32, {4});
  Bytes file = write_bytes(writer);
  const auto fields = fields_of(file);
  // 16 x 256 values: 1152 bytes in blocks of 64, 1088 in blocks of 128.
  if (!is_last) {
    const size_t at = find_field(fields, "after offset").at;
    patch(file, at, peek(file, at, 8) - 64, 8);
  }
  file.resize(file.size() - 64);
  return file;
}

TEST(Gguf, TheOtherFormOfQ2_0IsRefusedByName) {
  for (const bool is_last : {false, true}) {
    EXPECT_THAT(message(ErrorCode::kUnsupported, other_q2(is_last)),
                AllOf(HasSubstr("two.weight"), HasSubstr("128 values in 34 bytes"),
                      HasSubstr("1088 bytes"), HasSubstr("1152 bytes here")));
  }
  Writer writer;
  writer.declare("two.weight", quant::Type::kQ2_0, {16, 256});
  EXPECT_EQ(open_bytes(write_bytes(writer)).get("two.weight").n_bytes, 1152u);
  // Cut anywhere else it is an incomplete file, not another type.
  writer = Writer();
  writer.declare("two.weight", quant::Type::kQ2_0, {16, 256});
  Bytes file = write_bytes(writer);
  file.resize(file.size() - 640);
  EXPECT_THAT(corrupt(file), HasSubstr("are missing"));
}

TEST(Gguf, BoolsAreZeroOrOne) {
  Bytes file = small_file();
  const auto fields = fields_of(file);
  file[find_field(fields, "a.bool type").at + 4] = std::byte{2};
  EXPECT_THAT(corrupt(file), AllOf(HasSubstr("(a.bool)"), HasSubstr("is 2, not 0 or 1")));
}

TEST(Gguf, NamesFromTheFileAreEscapedAndShortened) {
  Writer writer;
  const std::string name = "\x1b[31m\n" + std::string(900, 'n');
  writer.declare(name, quant::Type::kF32, {4});
  const std::string text = corrupt(cut(write_bytes(writer), 1000));
  EXPECT_THAT(text, HasSubstr("tensor \\x1b[31m\\nnnn"));
  EXPECT_LT(text.size(), 500u);
}

}  // namespace
}  // namespace strata::gguf
