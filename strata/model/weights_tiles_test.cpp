#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/os/memory.h"
#include "strata/device/registry.h"
#include "strata/gguf/test_rewrite.h"
#include "strata/model/test_model.h"
#include "strata/model/weights.h"
#include "strata/quant/encode.h"
#include "strata/quant/tiles.h"
#include "tests/support/temp_folder.h"

// Weights in tiles of 16 rows: the same bits as in place, and the memory that was promised.
namespace strata::model {
namespace {

using gguf::testing::Changes;
using gguf::testing::rewritten;
using kernels::Packing;
using model::testing::Loaded;
using model::testing::LoadOptions;
using ::testing::HasSubstr;

// The test models are F32, which has no tiles: a copy of one with its matrices in these types.
gguf::Model quantised(const std::string& name, Changes changes = {}) {
  const gguf::Model file = gguf::Model::open(model::testing::model_path(name));
  constexpr quant::Type kTypes[] = {quant::Type::kQ8_0, quant::Type::kQ4_0, quant::Type::kIQ4_NL};
  std::map<std::string, std::vector<std::byte>> data;
  int n = 0;
  for (const gguf::Tensor& tensor : file.tensors()) {
    if (tensor.rank < 2 || tensor.n_columns() % 32 != 0) continue;
    const std::string key(tensor.name);
    const quant::Type type = kTypes[n++ % 3];
    data[key].resize(quant::row_bytes(type, tensor.n_values));
    quant::encode(type, model::testing::array(file, key), data[key].data());
    changes.forms[key] = {type, {tensor.shape().begin(), tensor.shape().end()}};
  }
  changes.edit = [&](std::string_view key, std::vector<std::byte>& bytes) {
    const auto found = data.find(std::string(key));
    if (found != data.end()) bytes = found->second;
  };
  return rewritten(file, changes);
}

std::vector<float> logits_of(gguf::Model file, const std::vector<int32_t>& ids,
                             const LoadOptions& options, WeightBytes* bytes = nullptr) {
  Loaded m(std::move(file), options);
  if (bytes != nullptr) *bytes = m.model().info().weights;
  const auto session = m.session();
  std::vector<float> residual;
  std::vector<float> logits = m.run(*session, ids, options.chunk, &residual);
  if (options.draft) {
    const auto cells = m.draft_session();
    const std::vector<float> draft =
        m.run_draft(*cells, std::span(ids).subspan(1), options.chunk, residual);
    logits.insert(logits.end(), draft.begin(), draft.end());
  }
  return logits;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class Tiles : public ::testing::TestWithParam<const char*> {};

TEST_P(Tiles, GiveTheBitsOfTheFileInPlace) {
  std::vector<int32_t> ids = model::testing::text_of(GetParam());
  ids.resize(std::min<size_t>(ids.size(), 40));
  for (const device::Backend backend : {device::Backend::kRef, device::Backend::kCpu}) {
    LoadOptions options{.chunk = 64, .draft = true, .backend = backend, .threads = 2};
    WeightBytes bytes;
    const std::vector<float> expected = logits_of(quantised(GetParam()), ids, options, &bytes);
    EXPECT_EQ(bytes.copied(), 0u);
    for (const char* devices : {"host", "host,sim"}) {
      for (const int chunk : {1, 64}) {
        options.devices = devices;
        options.chunk = chunk;
        options.packing = Packing::kTiles;
        const std::vector<float> got = logits_of(quantised(GetParam()), ids, options, &bytes);
        EXPECT_TRUE(same_bits(got, expected))
            << devices << ", backend " << static_cast<int>(backend) << ", steps of " << chunk;
        EXPECT_GT(bytes.tiles, bytes.rows) << "most of the matrices are re-laid";
        EXPECT_GT(bytes.in_place, 0u) << "what is looked up stays with the host";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Qwen4Exp, Tiles, ::testing::Values("tiny", "tiny-yarn", "tiny-nople"),
                         [](const auto& instance) {
                           std::string text = instance.param;
                           std::replace(text.begin(), text.end(), '-', '_');
                           return text;
                         });

// The embedding is looked up as rows and multiplied with as tiles.
TEST(WeightsInTiles, AHeadThatIsTheEmbeddingAsWell) {
  const std::vector<int32_t> ids = model::testing::text_of("tiny");
  const Changes tied{.drop_tensors = {"output.weight"}};
  WeightBytes in_place, tiles;
  const auto expected = logits_of(quantised("tiny", tied), ids, {.chunk = 64}, &in_place);
  EXPECT_TRUE(same_bits(
      logits_of(quantised("tiny", tied), ids, {.chunk = 64, .packing = Packing::kTiles}, &tiles),
      expected));
  // In place it is counted for each of its two users.
  EXPECT_EQ(tiles.copied() + tiles.in_place, in_place.in_place);
  EXPECT_GT(tiles.in_place, 0u);
}

// Experts of a file of our own, [8, 2 * 32, 64] in one tensor and [8, 24, 64], which is no whole
// number of tiles.
gguf::Model expert_file() {
  const gguf::Model tiny = gguf::Model::open(model::testing::model_path("tiny"));
  return rewritten(tiny, {.add_tensors = {{"both.weight", {quant::Type::kQ5_0, {8, 64, 64}}},
                                          {"odd.weight", {quant::Type::kQ5_0, {8, 24, 64}}},
                                          {"table.weight", {quant::Type::kQ5_0, {48, 64}}}},
                          .edit = [](std::string_view name, std::vector<std::byte>& bytes) {
                            if (name.starts_with("blk")) return;
                            for (size_t i = 0; i < bytes.size(); ++i) {
                              bytes[i] = static_cast<std::byte>((i * 2654435761u) >> 13);
                            }
                          }});
}

TEST(WeightsInTiles, EveryExpertHasItsRowsInTilesOfItsOwn) {
  const gguf::Model file = expert_file();
  for (const char* devices_text : {"host", "host,sim"}) {
    const auto devices = device::make_devices(devices_text, {});
    Weights w(file, *devices.back(), Packing::kTiles);
    std::vector<memory::ExpertStore::Parts> parts(8);
    kernels::Weight gate, up, odd, table;
    w.experts("both", {0, 8, 64, 0, 32, 64}, &gate, nullptr, &parts);
    w.experts("both", {1, 8, 64, 32, 32, 64}, &up, nullptr, &parts);
    w.experts("odd", {2, 8, 24, 0, 24, 64}, &odd, nullptr, &parts);
    w.table("table", 48, 64, &table);
    EXPECT_EQ(gate.packing, Packing::kTiles);
    EXPECT_EQ(up.packing, Packing::kTiles);
    EXPECT_EQ(odd.packing, Packing::kGguf);
    EXPECT_EQ(table.packing, Packing::kGguf);
    memory::Plan plan;
    w.declare_lines(plan);
    HostCopy copies(*devices.back(), plan);
    w.place({});
    copies.allocate();
    const auto stream = devices.back()->make_stream("test");
    const auto read = [&](const std::byte* from, Bytes n) {
      return copies.read(*stream, from, static_cast<int64_t>(n));
    };
    const bool host = std::string(devices_text) == "host";
    EXPECT_EQ(table.data == file.bytes(file.get("table.weight")).data(), host);

    const Bytes row = quant::row_bytes(quant::Type::kQ5_0, 64);
    const std::vector<std::byte> both = file.read(file.get("both.weight")),
                                 odds = file.read(file.get("odd.weight")),
                                 looked_up = file.read(file.get("table.weight"));
    std::vector<std::byte> got(row);
    for (size_t e = 0; e < 8; ++e) {
      for (size_t part = 0; part < 2; ++part) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(parts[e][part]) % 64, 0u);
        for (size_t r = 0; r < 32; ++r) {
          const std::vector<std::byte> tile = read(parts[e][part] + r / 16 * 16 * row, 16 * row);
          quant::row_of_tile(quant::Type::kQ5_0, 64, tile.data(), static_cast<int>(r % 16),
                             got.data());
          EXPECT_EQ(std::memcmp(got.data(), &both[(e * 64 + part * 32 + r) * row], row), 0);
        }
      }
      EXPECT_EQ(std::memcmp(read(parts[e][2], 24 * row).data(), &odds[e * 24 * row], 24 * row), 0);
    }
    EXPECT_EQ(read(table.data, looked_up.size()), looked_up);
  }
}

// A file is read without its pages becoming ours, and the copy is all that is taken.
TEST(WeightsInTiles, LoadingTakesTheCopyAndNoPagesOfTheFile) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer's own memory would be counted";
#else
  constexpr Bytes kMiB = Bytes{1} << 20;
  const strata::testing::TempFolder folder;
  {
    const gguf::Model tiny = gguf::Model::open(model::testing::model_path("tiny"));
    const gguf::Model big =
        rewritten(tiny, {.add_tensors = {{"big.weight", {quant::Type::kQ8_0, {32, 1024, 2048}}}}});
    folder.write("big.gguf", big.source(0).mapped());
  }
  const gguf::Model file = gguf::Model::open(folder.path("big.gguf"));
  const Bytes size = file.get("big.weight").n_bytes;
  ASSERT_GT(size, 64 * kMiB);
  ThreadPool pool(2);
  const auto devices = device::make_devices("host", {.pool = &pool});
  for (const Packing packing : {Packing::kTiles, Packing::kGguf}) {
    Weights w(file, *devices.back(), packing);
    kernels::Weight shape;
    std::vector<memory::ExpertStore::Parts> parts(32);
    w.experts("big", {0, 32, 1024, 0, 1024, 2048}, &shape, nullptr, &parts);
    memory::Plan plan;
    w.declare_lines(plan);
    const os::ProcessMemory before = os::process_memory();
    os::PeakAnonMemory anon(std::chrono::milliseconds(1));
    Bytes told = 0;
    w.place([&](Bytes done, Bytes total) {
      EXPECT_LE(done, total);
      told = done;
    });
    // What a step does: every weight is read.
    int sum = 0;
    for (const auto& expert : parts) {
      for (Bytes i = 0; i < size / 32; i += 512) sum += static_cast<int>(expert[0][i]);
    }
    EXPECT_EQ(sum, 0);
    const os::ProcessMemory after = os::process_memory();
    const Bytes file_pages = (after.rss - after.anon) - (before.rss - before.anon);
    if (packing == Packing::kTiles) {
      EXPECT_EQ(told, size);
      EXPECT_LT(file_pages, 2 * kMiB);
      // No lower bound: memory that an earlier test gave back to the heap may serve again.
      EXPECT_LT(anon.peak() - before.anon, size + 16 * kMiB);
      EXPECT_LE(plan.peak(device::kHostId), size + 2 * kMiB);
    } else {
      EXPECT_EQ(told, 0u);
      EXPECT_GE(file_pages, size - kMiB) << "the test would not see pages of the file";
      EXPECT_LT(anon.peak() - before.anon, 16 * kMiB);
    }
  }
#endif
}

// More than any machine has: priced to the byte, refused with the numbers, nothing read.
TEST(WeightsInTiles, AHugeFileIsPricedNotRead) {
  constexpr int64_t kExperts = 4096, kRows = 8192, kCols = 65536;
  const gguf::Model tiny = gguf::Model::open(model::testing::model_path("tiny"));
  const gguf::Model file = gguf::testing::rewritten_headers(
      tiny, {.add_tensors = {{"huge.weight", {quant::Type::kQ8_0, {kExperts, kRows, kCols}}}}});
  const Bytes bytes = Bytes{kExperts} * kRows * (kCols / 32 * 34);
  const auto devices = device::make_devices("host", {});
  Weights w(file, *devices.back(), Packing::kTiles);
  kernels::Weight shape;
  std::vector<memory::ExpertStore::Parts> parts(kExperts);
  w.experts("huge", {0, kExperts, kRows, 0, kRows, kCols}, &shape, nullptr, &parts);
  memory::Plan plan;
  w.declare_lines(plan);
  EXPECT_EQ(w.bytes().tiles, bytes);
  EXPECT_GE(plan.peak(device::kHostId), bytes);
  EXPECT_LT(plan.peak(device::kHostId), bytes + (Bytes{64} << 20));
  EXPECT_THAT(plan.table(), HasSubstr(format("{} B in tiles of 16 rows", bytes)));
  EXPECT_THROW(plan.require(device::kHostId, bytes, ""), Error);
  try {
    w.place({});
    ADD_FAILURE() << "loaded " << bytes << " bytes";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kResourceExhausted) << e.what();
  }
}

}  // namespace
}  // namespace strata::model
