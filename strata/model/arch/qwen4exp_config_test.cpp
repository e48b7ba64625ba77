#include "strata/model/arch/qwen4exp_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/device/registry.h"
#include "strata/gguf/test_rewrite.h"
#include "strata/model/model.h"
#include "strata/model/test_model.h"

// What a file or an option may say, and what is refused, by name and with the numbers.
namespace strata::model {
namespace {

using gguf::testing::Changes;
using gguf::testing::rewritten;
using gguf::testing::rewritten_headers;
using ::testing::HasSubstr;

const gguf::Model& tiny() {
  static const gguf::Model file = gguf::Model::open(model::testing::model_path("tiny"));
  return file;
}

// Opens without loading: configuration and shapes are judged here.
void open(const gguf::Model& file, ModelOptions options = {.max_context = 128, .draft = true}) {
  const auto blueprint = read_blueprint(file);
  const model::testing::Workplace place("host", {}, blueprint->facts().n_layers);
  memory::Plan plan;
  blueprint->open(options, place.stages, plan);
}

// What opening the changed model says; "" if it opens.
struct Refusal {
  ErrorCode code{};
  std::string text;
};
Refusal refusal(const Changes& changes,
                ModelOptions options = {.max_context = 128, .draft = true}) {
  const gguf::Model file = rewritten_headers(tiny(), changes);
  try {
    open(file, options);
  } catch (const Error& e) {
    return {e.code(), e.what()};
  }
  return {};
}

void expect_refused(const Changes& changes, ErrorCode code, const std::vector<std::string>& words,
                    ModelOptions options = {.max_context = 128, .draft = true}) {
  const Refusal r = refusal(changes, options);
  ASSERT_NE(r.text, "") << "accepted, wanted an error with " << words[0];
  EXPECT_EQ(r.code, code) << r.text;
  for (const std::string& word : words) EXPECT_THAT(r.text, HasSubstr(word));
}

std::string key(const std::string& name) { return "qwen4exp." + name; }

TEST(Qwen4ExpConfig, ReadsTheTinyModel) {
  const Qwen4ExpConfig c = read_qwen4exp_config(tiny());
  EXPECT_EQ(c.name, "tiny");
  EXPECT_EQ(c.n_layers, 4);
  EXPECT_EQ(c.n_draft_layers, 1);
  EXPECT_EQ(c.context.trained, 512);
  EXPECT_EQ(c.recurrent, (std::vector<bool>{true, true, true, false, false}));
  EXPECT_EQ(c.ratio, (std::vector<int>{0, 0, 0, 4, 4}));
  EXPECT_EQ(c.index_budget(3), 4);
  EXPECT_EQ(c.gdn_dv, 16);
  EXPECT_EQ(c.gdn_channels(), 2 * 2 * 16 + 6 * 16);
  EXPECT_EQ(c.ple_layers, std::vector<int>{1});
  EXPECT_EQ(c.ple_depth(), 9);
  EXPECT_EQ(c.n_ple_rows(), 8);
  EXPECT_TRUE(c.draft_norm_per_stream);
  EXPECT_EQ(c.context.yarn_factor, 1);
  open(tiny());
}

TEST(Qwen4ExpConfig, AnUnknownKeyUnderThePrefixIsRefusedByName) {
  expect_refused({.set_keys = {{key("attention.sliding_window"), gguf::Value(uint32_t{7})}}},
                 ErrorCode::kUnsupported, {"qwen4exp.attention.sliding_window"});
  expect_refused({.set_keys = {{key("expert_weights_scale"), gguf::Value(2.5f)}}},
                 ErrorCode::kUnsupported, {"qwen4exp.expert_weights_scale"});
  // Other prefixes are other people's.
  EXPECT_EQ(refusal({.set_keys = {{"other.key", gguf::Value(uint32_t{1})},
                                  {"qwen4expert.key", gguf::Value(uint32_t{1})}}})
                .text,
            "");
}

TEST(Qwen4ExpConfig, AnotherArchitectureIsRefusedByName) {
  expect_refused({.set_keys = {{"general.architecture", gguf::Value(std::string_view("llama"))}}},
                 ErrorCode::kUnsupported, {"llama", "qwen4exp"});
  expect_refused({.drop_keys = {"general.architecture"}}, ErrorCode::kUnsupported, {"not given"});
  // A name without end, or with control characters, does not fill or steer the terminal.
  const std::string endless = "\x1b[31m" + std::string(100'000, 'x');
  const Refusal r =
      refusal({.set_keys = {{"general.architecture", gguf::Value(std::string_view(endless))}}});
  EXPECT_EQ(r.code, ErrorCode::kUnsupported);
  EXPECT_THAT(r.text, HasSubstr("architecture \\x1b[31mxxx"));
  EXPECT_LT(r.text.size(), 1000U);
}

TEST(Qwen4ExpConfig, EveryRequiredKeyIsMissedByName) {
  for (const char* name : {"block_count",
                           "context_length",
                           "embedding_length",
                           "attention.head_count",
                           "attention.head_count_kv",
                           "attention.key_length",
                           "attention.value_length",
                           "attention.layer_norm_rms_epsilon",
                           "rope.dimension_count",
                           "rope.freq_base",
                           "expert_count",
                           "expert_used_count",
                           "expert_feed_forward_length",
                           "expert_shared_feed_forward_length",
                           "ssm.conv_kernel",
                           "ssm.state_size",
                           "ssm.group_count",
                           "ssm.time_step_rank",
                           "ssm.inner_size",
                           "hyper_connection.count",
                           "hyper_connection.low_rank",
                           "attention.indexer.head_count",
                           "attention.indexer.key_length",
                           "attention.indexer.top_k",
                           "attention.compress_ratios",
                           "ple.layers",
                           "ple.ngram_size",
                           "ple.heads_per_ngram",
                           "ple.conv_kernel",
                           "ple.eos_token_id",
                           "embedding_length_per_layer_input",
                           "ple.layer_multipliers",
                           "ple.head_offsets",
                           "ple.head_vocab_sizes"}) {
    SCOPED_TRACE(name);
    expect_refused({.drop_keys = {key(name)}}, ErrorCode::kCorruptFile, {key(name)});
  }
}

TEST(Qwen4ExpConfig, NumbersThatDoNotFitAreRefusedByKey) {
  struct Case {
    const char* name;
    gguf::Value value;
  };
  const uint32_t none = 0;
  const std::vector<Case> cases = {
      {"block_count", none},
      {"block_count", uint32_t{1}},  // nothing beside the draft block
      {"embedding_length", uint32_t{2'000'000}},
      {"attention.head_count", none},
      {"attention.head_count_kv", uint32_t{3}},  // does not divide 4
      {"attention.key_length", uint32_t{513}},
      {"attention.layer_norm_rms_epsilon", 0.0f},
      {"attention.layer_norm_rms_epsilon", -1.0f},
      {"attention.layer_norm_rms_epsilon", std::numeric_limits<float>::quiet_NaN()},
      {"attention.layer_norm_rms_epsilon", std::numeric_limits<float>::infinity()},
      {"attention.layer_norm_rms_epsilon", 1e38f},
      {"rope.dimension_count", uint32_t{7}},
      {"rope.dimension_count", uint32_t{64}},  // above the key length
      {"rope.freq_base", 0.5f},
      {"rope.freq_base", std::numeric_limits<float>::infinity()},
      {"rope.freq_base", 1e38f},
      {"context_length", uint32_t{2147483647}},
      {"ple.eos_token_id", uint32_t{512}},  // of 512
      {"ple.eos_token_id", uint32_t{2147483647}},
      {"expert_count", none},
      {"expert_used_count", uint32_t{17}},  // of 16
      {"expert_used_count", none},
      {"ssm.conv_kernel", uint32_t{1}},
      {"ssm.time_step_rank", uint32_t{5}},  // no multiple of 2 key heads
      {"ssm.inner_size", uint32_t{95}},
      {"hyper_connection.count", none},
      {"attention.indexer.top_k", uint32_t{3}},  // below a block
      {"ple.conv_kernel", none},
      {"embedding_length_per_layer_input", uint32_t{7}},
      {"nextn_predict_layers", uint32_t{2}},
      {"block_count", int32_t{-5}},
      {"block_count", std::string_view("5")},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    expect_refused({.set_keys = {{key(c.name), c.value}}}, ErrorCode::kCorruptFile, {key(c.name)});
  }
}

TEST(Qwen4ExpConfig, ArraysThatDoNotFitAreRefusedByKey) {
  const auto array = [](const std::vector<int32_t>& values) {
    return gguf::Value(gguf::Array{.element = gguf::ValueType::kI32,
                                   .size = values.size(),
                                   .raw = std::as_bytes(std::span(values))});
  };
  struct Case {
    const char* name;
    std::vector<int32_t> values;
  };
  const std::vector<Case> cases = {
      {"attention.compress_ratios", {}},
      {"attention.compress_ratios", {0, 0, 4}},  // too few
      {"attention.compress_ratios", {0, 0, 0, 4, 4, 0, 0, 0, 4, 4}},
      {"attention.compress_ratios", {0, 0, 0, 3, 4}},  // no power of two
      {"attention.compress_ratios", {2147483647, 0, 0, 4, 4}},
      {"attention.compress_ratios", {0, 0, 0, 0, 4}},  // none where an indexer is
      {"attention.compress_ratios", {0, 0, 0, 128, 4}},
      {"rope.dimension_sections", {2, 1}},
      {"rope.dimension_sections", {2, 1, 9, 0}},
      {"ple.layers", {}},  // although the tensors are there
      {"ple.layers", {2}},
      {"ple.layers", {7}},
      {"ple.layers", {-1}},
      {"ple.layer_multipliers", {3, 5}},
      {"ple.layer_multipliers", {0, 0, 0}},
      {"ple.layer_multipliers", {3, 5, 6}},
      {"ple.head_offsets", {0, 1, 2}},
      {"ple.head_offsets", {0, 0, 0, 0, 0, 0, 0, 0}},
      {"ple.head_offsets", {0, 257, 520, 789, 1060, 1337, 1618, 2000}},
      {"ple.head_vocab_sizes", {1, 1, 1, 1, 1, 1, 1, 0}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    expect_refused({.set_keys = {{key(c.name), array(c.values)}}}, ErrorCode::kCorruptFile,
                   {key(c.name)});
  }
  // Ratios that are all zero are known from early files and mean 4 where there is an indexer.
  const std::vector<int32_t> zeros(5, 0);
  const gguf::Model early =
      rewritten(tiny(), {.set_keys = {{key("attention.compress_ratios"), array(zeros)}}});
  EXPECT_EQ(read_qwen4exp_config(early).ratio, (std::vector<int>{0, 0, 0, 4, 4}));
  const std::array<uint8_t, 3> short_list = {1, 1, 1};
  const gguf::Value bools(gguf::Array{.element = gguf::ValueType::kBool,
                                      .size = short_list.size(),
                                      .raw = std::as_bytes(std::span(short_list))});
  expect_refused({.set_keys = {{key("attention.recurrent_layers"), bools}}},
                 ErrorCode::kCorruptFile, {key("attention.recurrent_layers"), "3 elements"});
  // A head that would read beyond the table.
  const std::vector<int32_t> far = {257, 263, 269, 271, 277, 281, 283, 2000};
  expect_refused({.set_keys = {{key("ple.head_vocab_sizes"), array(far)}}}, ErrorCode::kCorruptFile,
                 {"per_layer_token_embd", "head 7"});
  // More n-gram layers than one.
  const std::vector<int32_t> two = {0, 1};
  expect_refused({.set_keys = {{key("ple.layers"), array(two)}}}, ErrorCode::kUnsupported,
                 {"2 n-gram layers"});
}

TEST(Qwen4ExpConfig, RopeScalingOfTheFile) {
  const auto scaling = [](std::string_view type, float factor, uint32_t length) {
    return Changes{
        .set_keys = {{key("rope.scaling.type"), gguf::Value(type)},
                     {key("rope.scaling.factor"), gguf::Value(factor)},
                     {key("rope.scaling.original_context_length"), gguf::Value(length)}}};
  };
  EXPECT_EQ(refusal(scaling("yarn", 4, 64)).text, "");
  EXPECT_EQ(refusal(scaling("none", 4, 64)).text, "");
  expect_refused(scaling("linear", 2, 512), ErrorCode::kUnsupported, {"linear", "yarn"});
  for (float factor : {0.5f, 0.0f, -2.0f, 2000.0f, std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity()}) {
    SCOPED_TRACE(factor);
    expect_refused(scaling("yarn", factor, 512), ErrorCode::kCorruptFile, {"rope.scaling.factor"});
  }
  expect_refused(scaling("yarn", 2, 0), ErrorCode::kCorruptFile,
                 {"rope.scaling.original_context_length"});
}

TEST(Qwen4ExpConfig, EveryTensorIsMissedByName) {
  for (const gguf::Tensor& tensor : tiny().tensors()) {
    const std::string name(tensor.name);
    // Tied to the embedding, the trunk's, or the whole indexer: these may be absent.
    if (name == "output.weight" || name.find("indexer.k_proj") != std::string::npos) continue;
    SCOPED_TRACE(name);
    const Refusal r = refusal({.drop_tensors = {name}});
    if (name == "blk.0.hc_attn_norm.weight") {
      EXPECT_EQ(r.code, ErrorCode::kUnsupported);  // how a file with the draft block only looks
      continue;
    }
    EXPECT_EQ(r.code, ErrorCode::kCorruptFile) << r.text;
    EXPECT_THAT(r.text, HasSubstr(name));
  }
}

TEST(Qwen4ExpConfig, EveryTensorOfAnotherShapeIsRefusedByName) {
  for (const gguf::Tensor& tensor : tiny().tensors()) {
    const std::string name(tensor.name);
    std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
    shape.back() += 1;
    SCOPED_TRACE(name);
    const Refusal r = refusal({.forms = {{name, {quant::Type::kF32, shape}}}});
    EXPECT_EQ(r.code, ErrorCode::kCorruptFile) << r.text;
    EXPECT_THAT(r.text, HasSubstr(name));
  }
}

TEST(Qwen4ExpConfig, ATensorOfIntegersIsNoWeight) {
  expect_refused({.forms = {{"blk.3.attn_k.weight", {quant::Type::kI32, {64, 64}}}}},
                 ErrorCode::kUnsupported, {"blk.3.attn_k.weight", "I32"});
  expect_refused({.forms = {{"blk.3.attn_k_norm.weight", {quant::Type::kF64, {32}}}}},
                 ErrorCode::kUnsupported, {"blk.3.attn_k_norm.weight", "F64"});
}

TEST(Qwen4ExpConfig, TensorsThatMayBeAbsent) {
  EXPECT_EQ(refusal({.drop_tensors = {"output.weight"}}).text, "");
  // Without its indexer a layer attends densely.
  Changes dense;
  for (int l : {3, 4}) {
    for (const char* part : {"q_proj", "k_proj", "q_norm", "k_norm"}) {
      dense.drop_tensors.insert(format("blk.{}.indexer.{}.weight", l, part));
    }
  }
  EXPECT_EQ(read_qwen4exp_config(rewritten(tiny(), dense)).ratio,
            (std::vector<int>{0, 0, 0, 0, 0}));
  EXPECT_EQ(refusal(dense).text, "");
}

TEST(Qwen4ExpContext, WithinTheTrainedLengthOrScaled) {
  const auto with = [](int64_t context, double factor, int64_t length = 0) {
    return ModelOptions{.max_context = context, .yarn_factor = factor, .yarn_context = length};
  };
  open(tiny(), with(512, 0));
  open(tiny(), with(1024, 2));
  open(tiny(), with(4096, 2, 512));  // beyond the scaled length: the instance warns
  expect_refused({}, ErrorCode::kInvalidArgument, {"513", "512", "--rope-scale 2"}, with(513, 0));
  expect_refused({}, ErrorCode::kInvalidArgument, {"1024", "512"}, with(1024, 1));
  expect_refused({}, ErrorCode::kInvalidArgument, {"5000", "512", "--rope-scale 10"},
                 with(5000, 0));
  expect_refused({}, ErrorCode::kInvalidArgument, {"0.5"}, with(512, 0.5));
  expect_refused({}, ErrorCode::kInvalidArgument, {"2000"}, with(512, 2000));
}

// F-059: scaling turns the attention layers' angles, and none at all is the same as a factor of 1.
TEST(Qwen4ExpContext, ScalingChangesTheLogitsAndAFactorOfOneDoesNot) {
  const std::vector<int32_t> ids = model::testing::text_of("tiny");
  std::vector<std::vector<float>> logits;
  for (double factor : {0.0, 1.0, 2.0}) {
    model::testing::Loaded m("tiny", {.chunk = 128, .yarn_factor = factor});
    const auto session = m.session();
    logits.push_back(m.run(*session, ids, 128));
  }
  EXPECT_EQ(logits[0], logits[1]);
  EXPECT_GT(model::testing::max_difference(logits[0], logits[2]), 1e-3f);
}

// The option on the plain file is the file with the keys.
TEST(Qwen4ExpContext, OptionAndKeysAreTheSame) {
  const std::vector<int32_t> ids = model::testing::text_of("tiny");
  model::testing::Loaded by_option("tiny", {.chunk = 128, .yarn_factor = 4});
  model::testing::Loaded by_key(
      rewritten(tiny(),
                {.set_keys = {{key("rope.scaling.type"), gguf::Value(std::string_view("yarn"))},
                              {key("rope.scaling.factor"), gguf::Value(4.0f)},
                              {key("rope.scaling.original_context_length"),
                               gguf::Value(uint32_t{512})}}}),
      {.chunk = 128});
  const auto a = by_option.session(), b = by_key.session();
  EXPECT_EQ(by_option.run(*a, ids, 128), by_key.run(*b, ids, 128));
}

TEST(ModelFacts, OfTheFiles) {
  const ModelFacts plain = read_facts(tiny());
  EXPECT_EQ(plain.trained_context, 512);
  EXPECT_EQ(plain.scaled_context, 512);
  EXPECT_TRUE(plain.f32_attention);
  EXPECT_TRUE(plain.has_draft);
  EXPECT_TRUE(plain.draft_norm_per_stream);
  const gguf::Model demo = gguf::Model::open(model::testing::model_path("strata-demo"));
  EXPECT_FALSE(read_facts(demo).f32_attention);
  const gguf::Model longer = rewritten(
      tiny(),
      {.set_keys = {{key("rope.scaling.type"), gguf::Value(std::string_view("yarn"))},
                    {key("rope.scaling.factor"), gguf::Value(4.0f)},
                    {key("rope.scaling.original_context_length"), gguf::Value(uint32_t{512})}}});
  EXPECT_EQ(read_facts(longer).scaled_context, 2048);
}

}  // namespace
}  // namespace strata::model
