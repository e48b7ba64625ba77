#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/cli/commands.h"
#include "strata/cli/synth_blocks.h"
#include "strata/cli/synth_model.h"
#include "strata/engine/engine.h"
#include "strata/model/instance.h"
#include "strata/quant/decode.h"
#include "strata/text/vocab.h"

namespace strata::cli {
namespace {

using ::testing::HasSubstr;

// True in its parts, small in its numbers.
SynthShape small_shape() {
  SynthShape shape;
  shape.layers = 4;
  shape.width = 256;
  shape.low_rank = 32;
  shape.vocab = 1024;
  shape.experts = 12;
  shape.top_k = 3;
  shape.ff = 64;
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.head_dim = 64;
  shape.rope_dims = 16;
  shape.index_heads = 2;
  shape.index_dim = 32;
  shape.index_top_k = 32;
  shape.gdn_key_heads = 2;
  shape.gdn_value_heads = 8;
  shape.gdn_dim = 32;
  shape.ple_base = 50;
  shape.ple_heads = 4;
  return shape;
}

std::vector<std::byte> bytes_of(const SynthShape& shape, int threads) {
  ThreadPool pool(threads);
  io::MemoryOutput out;
  SynthModel(shape).write(out, pool, {});
  return out.take();
}

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name)
      : path_(std::filesystem::path(::testing::TempDir()) / ("strata-synth-" + name)) {
    std::filesystem::remove(path_);
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// The first tokens of a greedy answer.
std::vector<int32_t> answer_of(const std::string& path, int threads) {
  model::Instance instance({.path = path, .threads = threads, .max_context = 64, .chunk = 16});
  const text::Tokenizer tokenizer(text::read_vocab(instance.file().metadata()));
  std::vector<int32_t> ids;
  std::string failed;
  engine::Engine engine(
      instance, tokenizer, {.emit = [&](std::span<const wire::Addressed> events) {
        for (const wire::Addressed& each : events) {
          if (const auto* tokens = std::get_if<wire::Tokens>(&each.event)) {
            ids.insert(ids.end(), tokens->ids.begin(), tokens->ids.end());
          } else if (const auto* failure = std::get_if<wire::Failed>(&each.event)) {
            failed = failure->message;
          }
        }
      }});
  engine.prepare({});
  wire::Submit submit;
  for (int i = 0; i < 24; ++i) submit.ids.push_back((i * 7919) % 900);
  submit.max_tokens = 8;
  submit.sampling.temperature = 0;
  engine.command(1, std::move(submit));
  while (engine.step()) {
  }
  EXPECT_EQ(failed, "");
  return ids;
}

TEST(RandomBlocks, EveryTypeOfWeightsHasTheSpreadAskedForAndNoMean) {
  int n_types = 0;
  for (const quant::TypeTraits& traits : quant::all_types()) {
    if (traits.type_class == quant::TypeClass::kPlain) {
      EXPECT_THROW(RandomBlocks(traits.type, 1, 7), Error) << traits.name;
      continue;
    }
    ++n_types;
    const RandomBlocks blocks(traits.type, 0.02, 7);
    const size_t n_blocks = 65536 / static_cast<size_t>(traits.block_values);
    std::vector<std::byte> bytes(n_blocks * static_cast<size_t>(traits.block_bytes));
    blocks.fill(0, bytes);
    std::vector<float> values(65536);
    quant::decode(traits.type, bytes.data(), values);
    double sum = 0, squares = 0;
    for (const float x : values) {
      ASSERT_TRUE(std::isfinite(x)) << traits.name;
      sum += x;
      squares += static_cast<double>(x) * x;
    }
    const double n = static_cast<double>(values.size());
    // The scale of MXFP4 is a power of two.
    const double slack = traits.type == quant::Type::kMXFP4 ? 1.5 : 1.1;
    EXPECT_LT(std::sqrt(squares / n), 0.02 * slack) << traits.name;
    EXPECT_GT(std::sqrt(squares / n), 0.02 / slack) << traits.name;
    EXPECT_LT(std::abs(sum / n), 0.02 * 0.1) << traits.name;
  }
  EXPECT_GT(n_types, 20);
}

TEST(RandomBlocks, APieceIsAFunctionOfItsPlace) {
  for (const char* name : {"F32", "F16", "Q4_0", "Q4_K", "Q2_0", "IQ1_M", "NVFP4"}) {
    const quant::TypeTraits& traits = *quant::find_type(name);
    const size_t block = static_cast<size_t>(traits.block_bytes);
    const RandomBlocks blocks(traits.type, 1, 5);
    std::vector<std::byte> whole(43 * block), part(11 * block);
    blocks.fill(0, whole);
    blocks.fill(32, part);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 32 * block)) << name;
  }
}

TEST(Synth, TheBytesDependOnTheSeedAloneNotOnTheThreads) {
  SynthShape shape = small_shape();
  const auto one = bytes_of(shape, 1);
  EXPECT_EQ(one, bytes_of(shape, 3));
  const Bytes tensors = SynthModel(shape).tensor_bytes();
  EXPECT_GT(one.size(), tensors);
  EXPECT_LT(one.size(), tensors + (Bytes{1} << 20));
  shape.seed = 4;
  EXPECT_NE(one, bytes_of(shape, 1));
}

TEST(Synth, TheFileIsAModelThatAnswers) {
  SynthShape shape = small_shape();
  for (const bool draft : {false, true}) {
    shape.draft = draft;
    const TemporaryFile file(draft ? "draft.gguf" : "plain.gguf");
    io::write_atomically(file.path(), bytes_of(shape, 2));
    {
      model::Instance instance({.path = file.path(), .max_context = 64, .draft = draft});
      const model::ModelInfo& info = instance.model().info();
      EXPECT_EQ(info.n_layers, 4);
      EXPECT_EQ(info.n_experts, 12);
      EXPECT_EQ(info.top_k, 3);
      EXPECT_EQ(info.n_vocab, 1024);
      EXPECT_EQ(info.has_draft, draft);
      // All but the embeddings; of the trunk's experts 3 of 12.
      Bytes read = 0;
      for (const gguf::Tensor& tensor : instance.file().tensors()) {
        if (tensor.name.starts_with("blk.4.") || tensor.name.ends_with("token_embd.weight"))
          continue;
        read += tensor.name.ends_with("_exps.weight") ? tensor.n_bytes / 4 : tensor.n_bytes;
      }
      EXPECT_EQ(info.bytes_per_token, read);
      const auto& warnings = instance.warnings();
      EXPECT_TRUE(warnings.empty()) << warnings.front();
    }
    const std::vector<int32_t> ids = answer_of(file.path(), 1);
    EXPECT_EQ(ids.size(), 8u);
    EXPECT_EQ(ids, answer_of(file.path(), 2));
  }
}

TEST(Synth, EveryTypeRunsAsExpertsAndAsDenseMatrix) {
  for (const quant::TypeTraits& traits : quant::all_types()) {
    if (traits.type_class == quant::TypeClass::kPlain) continue;
    SynthShape shape = small_shape();
    shape.ff = 256;  // whole blocks of every type
    shape.gate = shape.down = shape.dense = shape.embedding = traits.type;
    const TemporaryFile file(format("{}.gguf", traits.name));
    io::write_atomically(file.path(), bytes_of(shape, 2));
    EXPECT_EQ(answer_of(file.path(), 1).size(), 8u) << traits.name;
  }
}

std::string refusal(const Settings& settings, ErrorCode code) {
  Invocation invocation;
  invocation.command = kSynth;
  invocation.settings = settings;
  try {
    run_synth(invocation);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "it was done";
  return {};
}

TEST(Synth, WhatCannotBeIsRefusedBeforeAnythingIsWritten) {
  const TemporaryFile file("refused.gguf");
  const auto with = [&](auto&& edit) {
    Settings settings;
    settings.model = file.path();
    edit(settings);
    return settings;
  };
  constexpr auto kBad = ErrorCode::kInvalidArgument;
  EXPECT_THAT(refusal(with([](Settings& s) { s.synth_gate = "Q9_K"; }), kBad),
              HasSubstr("--gate Q9_K"));
  EXPECT_THAT(refusal(with([](Settings& s) { s.synth_dense = "I32"; }), kBad), HasSubstr("Q4_K"));
  EXPECT_THAT(refusal(with([](Settings& s) { s.synth_down = "Q4_K"; }), kBad),
              HasSubstr("256 values, and the rows 640"));
  EXPECT_THAT(refusal(with([](Settings& s) { s.synth_ple = "Q2_0"; }), kBad), HasSubstr("--ple"));
  EXPECT_THAT(refusal(with([](Settings& s) { s.synth_experts = 4; }), kBad), HasSubstr("--top 10"));
  // 4095 layers of 65536 experts: more than any disk.
  EXPECT_THAT(refusal(with([](Settings& s) {
                        s.synth_layers = 4095;
                        s.synth_experts = 65536;
                      }),
                      ErrorCode::kResourceExhausted),
              HasSubstr(" GB free"));
  EXPECT_THAT(
      refusal(with([](Settings& s) { s.model = "/nowhere/at/all.gguf"; }), ErrorCode::kNotFound),
      HasSubstr("/nowhere/at"));
  EXPECT_THAT(refusal(with([](Settings& s) { s.model = "/dev/null"; }), kBad),
              HasSubstr("is no file"));
  EXPECT_FALSE(std::filesystem::exists(file.path()));
}

}  // namespace
}  // namespace strata::cli
