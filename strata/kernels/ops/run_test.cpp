#include "strata/kernels/ops/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "strata/base/error.h"
#include "strata/kernels/test_machines.h"

namespace strata::kernels {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Machine;

// A product of four rows that fits, to spoil.
struct Product {
  Product() {
    args = {.n_rows = &count,
            .x = View<const float>(x.data(), {4, 64}),
            .out = {{{w.w, View<float>(y.data(), {4, 5})}}},
            .n_out = 1};
  }
  testing::Rng rng{1};
  testing::TestWeight w{rng, quant::Type::kQ8_0, 5, 64};
  std::vector<float> x = testing::normal(rng, 4 * 64), y = std::vector<float>(20, -7.5f);
  int32_t count = 4;
  MatMul args;
};

template <class Args>
void expect_refusal(ErrorCode code, const char* text, Machine& m, const Op<Args>& op,
                    const Args& args) {
  try {
    run(m.stream(), op, args);
    ADD_FAILURE() << "ran: " << text;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code);
    EXPECT_THAT(e.what(), AllOf(HasSubstr(Args::kName), HasSubstr(text)));
  }
}

TEST(Run, AnOpThatIsNotHereIsNamedWithItsDevice) {
  Product p;
  const OpTable none;
  for (const auto& m : testing::machines()) {
    EXPECT_TRUE(supports(m->ops().matmul, p.args));
    EXPECT_FALSE(supports(none.matmul, p.args));
    expect_refusal(ErrorCode::kUnsupported, "host", *m, none.matmul, p.args);
    EXPECT_THROW(scratch_bytes(m->stream(), none.matmul, p.args), Error);
  }
}

TEST(Run, WhatABackendCannotTakeIsNotSupported) {
  Machine& cpu = *testing::machines().back();
  RouterTopk wide{.logits = View<float>(nullptr, {1, 100}),
                  .top_k = 65,
                  .id = View<int32_t>(nullptr, {1, 65}),
                  .weight = View<float>(nullptr, {1, 65})};
  EXPECT_FALSE(supports(cpu.ops().router_topk, wide));
  EXPECT_TRUE(supports(ref_ops().router_topk, wide));
  expect_refusal(ErrorCode::kUnsupported, "host", cpu, cpu.ops().router_topk, wide);
  wide.top_k = 64;
  wide.id = View<int32_t>(nullptr, {1, 64});
  wide.weight = View<float>(nullptr, {1, 64});
  EXPECT_TRUE(supports(cpu.ops().router_topk, wide));
}

TEST(Run, ArgumentsThatDoNotFitEachOtherAreOurMistake) {
  for (const auto& m : testing::machines()) {
    const auto refused = [&](const char* text, auto spoil) {
      Product p;
      spoil(p);
      expect_refusal(ErrorCode::kInternal, text, *m, m->ops().matmul, p.args);
      for (const float y : p.y) EXPECT_EQ(y, -7.5f) << text << ": written";
    };
    refused("each W", [](Product& p) { p.args.x = View<const float>(p.x.data(), {4, 63}); });
    refused("each y", [](Product& p) { p.args.out[0].y = View<float>(p.y.data(), {3, 5}); });
    refused("each y", [](Product& p) { p.args.out[0].y = View<float>(p.y.data(), {4, 4}); });
    refused("each W", [](Product& p) { p.args.out[0].w.cols = 32; });
    refused("each W", [](Product& p) { p.args.out[0].w.packing = Packing::kTiles; });
    refused("kMax", [](Product& p) { p.args.n_out = 0; });
    refused("kMax", [](Product& p) { p.args.n_out = MatMul::kMax + 1; });
    refused("overlap", [](Product& p) { p.args.out[0].y = View<float>(p.x.data() + 255, {4, 5}); });
    refused("x [rows, cols]", [](Product& p) {
      const auto* const odd = reinterpret_cast<const std::byte*>(p.x.data()) + 2;
      p.args.x = View<const float>(reinterpret_cast<const float*>(odd), {3, 64});
    });
  }
}

TEST(Run, ScratchThatIsTooSmallOrNotAlignedIsOurMistake) {
  Machine& m = *testing::machines().back();
  Product p;
  const Op<MatMul>& op = m.ops().matmul;
  const Bytes wanted = scratch_bytes(m.stream(), op, p.args);
  ASSERT_GT(wanted, 0U);
  std::vector<std::byte> memory(static_cast<size_t>(wanted) + 512);
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  std::byte* const aligned = memory.data() + (256 - address % 256) % 256;
  const auto n = static_cast<int64_t>(wanted);
  p.args.scratch = View<std::byte>(aligned, {n - 1});
  expect_refusal(ErrorCode::kInternal, "scratch", m, op, p.args);
  p.args.scratch = View<std::byte>(aligned + 64, {n});
  expect_refusal(ErrorCode::kInternal, "scratch", m, op, p.args);
  p.args.scratch = View<std::byte>(aligned, {n});
  EXPECT_NO_THROW(run(m.stream(), op, p.args));
}

// Memory is laid out with the shapes alone.
TEST(Run, ScratchIsAskedForWithoutPointers) {
  Product p;
  MatMul shapes = p.args;
  shapes.x = View<const float>(nullptr, {4, 64});
  shapes.out[0].y = View<float>(nullptr, {4, 5});
  shapes.out[0].w.data = nullptr;
  for (const auto& m : testing::machines()) {
    EXPECT_EQ(scratch_bytes(m->stream(), m->ops().matmul, shapes),
              scratch_bytes(m->stream(), m->ops().matmul, p.args));
  }
}

}  // namespace
}  // namespace strata::kernels
