#include "strata/model/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/device/registry.h"
#include "strata/gguf/test_rewrite.h"
#include "strata/model/test_model.h"

// The forms in which files hold the same matrices.
namespace strata::model {
namespace {

using gguf::testing::Changes;
using gguf::testing::rewritten;
using model::testing::Loaded;

const gguf::Model& tiny() {
  static const gguf::Model file = gguf::Model::open(model::testing::model_path("tiny"));
  return file;
}

std::vector<float> logits_of(gguf::Model file, bool draft = false) {
  const std::vector<int32_t> ids = model::testing::text_of("tiny");
  Loaded m(std::move(file), {.chunk = 128, .draft = draft});
  const auto session = m.session();
  std::vector<float> residual;
  std::vector<float> logits = m.run(*session, ids, 128, &residual);
  if (draft) {
    const auto cells = m.draft_session();
    logits = m.run_draft(*cells, std::span(ids).subspan(1), 128, residual);
  }
  return logits;
}
std::vector<float> plain_logits(bool draft = false) {
  return logits_of(rewritten(tiny(), {}), draft);
}

std::vector<std::byte> floats(size_t n, float value) {
  std::vector<std::byte> bytes(4 * n);
  for (size_t i = 0; i < n; ++i) std::memcpy(&bytes[4 * i], &value, 4);
  return bytes;
}

TEST(Weights, GateAndUpInOneTensor) {
  constexpr int64_t kExperts = 16, kFf = 32, kWidth = 64;
  Changes fused;
  std::map<std::string, std::vector<std::byte>> data;
  for (int l = 0; l < 4; ++l) {
    const std::string gate = format("blk.{}.ffn_gate_exps.weight", l),
                      up = format("blk.{}.ffn_up_exps.weight", l),
                      both = format("blk.{}.ffn_gate_up_exps.weight", l);
    fused.drop_tensors.insert({gate, up});
    fused.add_tensors[both] = {quant::Type::kF32, {kExperts, 2 * kFf, kWidth}};
    const std::vector<std::byte> g = tiny().read(tiny().get(gate)), u = tiny().read(tiny().get(up));
    const std::ptrdiff_t one = kFf * kWidth * 4;
    for (std::ptrdiff_t e = 0; e < kExperts; ++e) {
      data[both].insert(data[both].end(), g.begin() + e * one, g.begin() + (e + 1) * one);
      data[both].insert(data[both].end(), u.begin() + e * one, u.begin() + (e + 1) * one);
    }
  }
  fused.edit = [&](std::string_view name, std::vector<std::byte>& bytes) {
    const auto found = data.find(std::string(name));
    if (found != data.end()) bytes = found->second;
  };
  EXPECT_EQ(logits_of(rewritten(tiny(), fused)), plain_logits());
}

// NVFP4 files have a factor beside a matrix, or one an expert.
TEST(Weights, FactorsMultiplyTheProduct) {
  float factor = 1;
  Changes scaled;
  scaled.add_tensors = {{"blk.1.attn_qkv.scale", {quant::Type::kF32, {1}}},
                        {"blk.2.ffn_down_exps.scale", {quant::Type::kF32, {16}}},
                        {"blk.2.ffn_gate_exps.scale", {quant::Type::kF32, {16}}},
                        {"blk.2.ffn_gate_exps.input_scale", {quant::Type::kF32, {16}}}};
  scaled.edit = [&](std::string_view name, std::vector<std::byte>& bytes) {
    if (name.ends_with("scale")) bytes = floats(bytes.size() / 4, factor);
  };
  const std::vector<float> plain = plain_logits();
  EXPECT_EQ(logits_of(rewritten(tiny(), scaled)), plain);
  // A factor of 2 and half the weights are the same bits.
  factor = 2;
  scaled.edit = [&](std::string_view name, std::vector<std::byte>& bytes) {
    if (name.ends_with("scale")) bytes = floats(bytes.size() / 4, factor);
    if (name == "blk.1.attn_qkv.weight" || name == "blk.2.ffn_down_exps.weight" ||
        name == "blk.2.ffn_gate_exps.weight") {
      for (size_t i = 0; i < bytes.size(); i += 4) {
        float w;
        std::memcpy(&w, &bytes[i], 4);
        w /= 2;
        std::memcpy(&bytes[i], &w, 4);
      }
    }
  };
  EXPECT_EQ(logits_of(rewritten(tiny(), scaled)), plain);
}

TEST(Weights, DraftMayHaveItsOwnEmbeddingAndHead) {
  Changes own;
  const std::vector<std::byte> embedding = tiny().read(tiny().get("token_embd.weight")),
                               head = tiny().read(tiny().get("output.weight"));
  own.add_tensors = {{"blk.4.nextn.embed_tokens.weight", {quant::Type::kF32, {512, 64}}},
                     {"blk.4.nextn.shared_head_head.weight", {quant::Type::kF32, {512, 64}}}};
  own.edit = [&](std::string_view name, std::vector<std::byte>& bytes) {
    if (name.find("embed_tokens") != std::string_view::npos) bytes = embedding;
    if (name.find("shared_head") != std::string_view::npos) bytes = head;
  };
  const std::vector<float> plain = plain_logits(true);
  EXPECT_EQ(logits_of(rewritten(tiny(), own), true), plain);
  own.edit = nullptr;  // zeros
  EXPECT_EQ(logits_of(rewritten(tiny(), own), true), std::vector<float>(plain.size(), 0.0f));
}

TEST(Weights, WithoutAHeadTheEmbeddingIsOne) {
  const std::vector<std::byte> head = tiny().read(tiny().get("output.weight"));
  const std::vector<std::byte> embedding = tiny().read(tiny().get("token_embd.weight"));
  const gguf::Model tied = rewritten(tiny(), {.drop_tensors = {"output.weight"}});
  const gguf::Model written =
      rewritten(tiny(), {.edit = [&](std::string_view name, std::vector<std::byte>& bytes) {
                  if (name == "output.weight") bytes = embedding;
                }});
  EXPECT_NE(head, embedding);
  EXPECT_EQ(logits_of(rewritten(tied, {})), logits_of(rewritten(written, {})));
}

TEST(Weights, TellWhatNobodyAskedFor) {
  const gguf::Model file =
      rewritten(tiny(), {.add_tensors = {{"blk.0.mystery.weight", {quant::Type::kF32, {3}}}}});
  const auto devices = device::make_devices("host", {});
  Weights w(file, *devices.back(), kernels::Packing::kGguf);
  kernels::Weight embedding;
  w.matrix("token_embd", 512, 64, &embedding);
  EXPECT_THAT(w.unused(), ::testing::Contains("blk.0.mystery.weight"));
  EXPECT_THAT(w.unused(), ::testing::Not(::testing::Contains("token_embd.weight")));
}

TEST(Weights, AShapeThatDoesNotFitIsToldWithBoth) {
  const auto devices = device::make_devices("host", {});
  Weights w(tiny(), *devices.back(), kernels::Packing::kGguf);
  kernels::Weight to;
  try {
    w.matrix("token_embd", 512, 63, &to);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kCorruptFile);
    EXPECT_THAT(e.what(), ::testing::HasSubstr("token_embd.weight"));
    EXPECT_THAT(e.what(), ::testing::HasSubstr("[512, 64]"));
    EXPECT_THAT(e.what(), ::testing::HasSubstr("[512, 63]"));
  }
  EXPECT_THROW(w.matrix("no_such", 1, 1, &to), Error);
}

// Loading says how far it is and takes the memory it planned: mapped, read, and on a card.
TEST(Weights, LoadingKeepsToThePlan) {
  for (const char* devices_text : {"host", "host,sim"}) {
    for (const io::Access access : {io::Access::kMapped, io::Access::kPlain}) {
      for (const kernels::Packing packing : {kernels::Packing::kGguf, kernels::Packing::kTiles}) {
        const gguf::Model file =
            gguf::Model::open(model::testing::model_path("strata-demo"), {.access = access});
        memory::Plan plan;
        memory::Ledger ledger(plan);
        const auto blueprint = read_blueprint(file);
        const model::testing::Workplace place(devices_text, {.gate = &ledger},
                                              blueprint->facts().n_layers);
        const std::unique_ptr<Model> m = blueprint->open(
            {.max_context = 128, .chunk = 16, .max_out = 1, .packing = packing, .draft = true},
            place.stages, plan);
        Bytes last = 0, total = 1;
        m->load([&](Bytes done, Bytes of) {
          EXPECT_GE(done, last);
          EXPECT_LE(done, of);
          last = done;
          total = of;
        });
        EXPECT_EQ(last, total);
        EXPECT_EQ(total, m->info().weights.copied());
        const bool in_place = devices_text == std::string("host") && file.is_mapped();
        EXPECT_EQ(total > 0, !in_place || packing == kernels::Packing::kTiles);
        EXPECT_GT(total + m->info().weights.in_place, Bytes{20'000'000});
        for (const memory::Line& line : plan.lines()) {
          EXPECT_LE(ledger.used(line.id), line.bytes) << line.owner << " " << line.name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace strata::model
