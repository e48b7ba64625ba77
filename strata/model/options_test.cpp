#include "strata/model/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "strata/base/error.h"

namespace strata::model {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
    return e.what();
  }
  return "";
}

TEST(Options, SizesThatCannotBeLaidOutAreNamed) {
  const ModelOptions good{.max_context = 1 << 20, .slots = 1024, .chunk = 1 << 20};
  EXPECT_NO_THROW(require_sizes(good));
  const auto refused = [&](auto spoil) {
    ModelOptions options = good;
    spoil(options);
    return refusal([&] { require_sizes(options); });
  };
  EXPECT_THAT(refused([](ModelOptions& o) { o.chunk = 0; }), HasSubstr("--prefill is 0"));
  EXPECT_THAT(refused([](ModelOptions& o) { ++o.chunk; }), HasSubstr("--prefill is 1048577"));
  EXPECT_THAT(refused([](ModelOptions& o) { o.slots = (1 << 16) + 1; }), HasSubstr("--batch"));
  // Of all slots together.
  EXPECT_THAT(refused([](ModelOptions& o) { ++o.max_context; }), HasSubstr("--max-context"));
  EXPECT_THAT(refused([](ModelOptions& o) { o.max_out = -1; }), HasSubstr("logits"));
  EXPECT_THAT(refused([](ModelOptions& o) { o.window = 0; }), HasSubstr("window"));
}

TEST(Options, AContextBeyondTheTrainedOneNeedsAScaling) {
  const ContextRange plain{.trained = 512};
  ModelOptions options{.max_context = 512};
  EXPECT_EQ(resolve_context(options, plain, "m").scaled(), 512);
  options.max_context = 1025;
  EXPECT_THAT(
      refusal([&] { resolve_context(options, plain, "m"); }),
      AllOf(HasSubstr("1025"), HasSubstr("m was trained on 512"), HasSubstr("--rope-scale 3")));
  options.yarn_factor = 3;
  const ContextRange wide = resolve_context(options, plain, "m");
  EXPECT_EQ(wide.yarn_context, 512);
  EXPECT_EQ(wide.scaled(), 1536);
  options.yarn_context = 256;
  EXPECT_EQ(resolve_context(options, plain, "m").scaled(), 768);
}

TEST(Options, TheFilesScalingIsKeptUnlessItIsTurnedOff) {
  const ContextRange stretched{.trained = 512, .yarn_factor = 4, .yarn_context = 128};
  ModelOptions options{.max_context = 600};
  EXPECT_EQ(resolve_context(options, stretched, "m").yarn_factor, 4);
  options.yarn_factor = 1;
  EXPECT_NE(refusal([&] { resolve_context(options, stretched, "m"); }), "");
  options.max_context = 512;
  EXPECT_EQ(resolve_context(options, stretched, "m").scaled(), 512);
}

TEST(Options, FactorsThatAreNoneAreRefused) {
  for (const double factor : {0.5, 1025.0, static_cast<double>(INFINITY)}) {
    const ModelOptions options{.max_context = 1, .yarn_factor = factor};
    EXPECT_NE(refusal([&] { resolve_context(options, {.trained = 8}, "m"); }), "") << factor;
  }
}

}  // namespace
}  // namespace strata::model
