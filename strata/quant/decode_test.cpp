#include "strata/quant/decode.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "strata/base/error.h"
#include "tests/support/quant_vectors.h"

namespace strata::quant {
namespace {

std::vector<uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<uint32_t> out;
  for (float v : values) out.push_back(std::bit_cast<uint32_t>(v));
  return out;
}

TEST(Decode, EveryQuantisedTypeEqualsTheGoldenValuesBitForBit) {
  const testing::QuantVectors golden;
  int n_types = 0;
  for (const TypeTraits& t : all_types()) {
    if (t.type_class != TypeClass::kQuantised) continue;
    ++n_types;
    SCOPED_TRACE(t.name);
    const std::vector<float> values = golden.values(t.name);
    ASSERT_EQ(values.size(), testing::QuantVectors::kValues);
    ASSERT_EQ(golden.blocks(t.name).size(), row_bytes(t.type, values.size()));
    std::vector<float> out(values.size());
    decode(t.type, golden.blocks(t.name).data(), out);
    EXPECT_EQ(bits_of(out), bits_of(values));
  }
  EXPECT_EQ(n_types, 23);
}

TEST(Decode, AddressesNeedNoAlignmentAndNothingBesideTheRowIsTouched) {
  std::mt19937 random(1);
  for (const TypeTraits& t : all_types()) {
    if (t.type_class == TypeClass::kPlain) continue;
    SCOPED_TRACE(t.name);
    const size_t n = 3 * static_cast<size_t>(t.block_values);
    // Exactly sized, so that the address sanitizer sees a read beyond the row.
    std::vector<std::byte> row(row_bytes(t.type, n));
    for (std::byte& b : row) b = static_cast<std::byte>(random());
    std::vector<std::byte> shifted(row.size() + 1);
    std::copy(row.begin(), row.end(), shifted.begin() + 1);
    std::vector<float> whole(n);
    std::vector<float> moved(n);
    decode(t.type, row.data(), whole);
    decode(t.type, shifted.data() + 1, moved);
    EXPECT_EQ(bits_of(whole), bits_of(moved));
    std::vector<float> last(static_cast<size_t>(t.block_values));
    decode(t.type, row.data() + row_bytes(t.type, n) / 3 * 2, last);
    EXPECT_EQ(bits_of(last), bits_of({whole.end() - t.block_values, whole.end()}));
  }
}

TEST(Decode, FloatsByHand) {
  const unsigned char f16[] = {0x00, 0x3C, 0x00, 0xC0, 0x01, 0x00, 0xFF, 0x7B};
  std::vector<float> out(4);
  decode(Type::kF16, std::as_bytes(std::span(f16)).data(), out);
  EXPECT_EQ(out, (std::vector<float>{1, -2, 0x1p-24F, 65504}));
  const unsigned char bf16[] = {0x80, 0x3F, 0x20, 0xC1};
  out.resize(2);
  decode(Type::kBF16, std::as_bytes(std::span(bf16)).data(), out);
  EXPECT_EQ(out, (std::vector<float>{1, -10}));
  const unsigned char f32[] = {0x00, 0x00, 0x40, 0xC0};
  out.resize(1);
  decode(Type::kF32, std::as_bytes(std::span(f32)).data(), out);
  EXPECT_EQ(out, (std::vector<float>{-3}));
}

// The golden blocks have scales near 0.03; these are the ends of the scale formats.
TEST(Decode, ScalesAtTheEndsOfTheirRange) {
  std::vector<std::byte> mxfp4(17, std::byte{0x77});  // code 7: 6
  std::vector<float> out(32);
  mxfp4[0] = std::byte{0};
  decode(Type::kMXFP4, mxfp4.data(), out);
  EXPECT_EQ(out[5], std::ldexp(6.0F, -127));
  mxfp4[0] = std::byte{1};
  decode(Type::kMXFP4, mxfp4.data(), out);
  EXPECT_EQ(out[5], std::ldexp(6.0F, -126));
  mxfp4[0] = std::byte{252};
  decode(Type::kMXFP4, mxfp4.data(), out);
  EXPECT_EQ(out[5], std::ldexp(6.0F, 125));

  std::vector<std::byte> nvfp4(36, std::byte{0x22});  // code 2: 1
  nvfp4[0] = std::byte{0x01};
  nvfp4[1] = std::byte{0x7E};
  nvfp4[2] = std::byte{0x7F};
  nvfp4[3] = std::byte{0x88};
  out.resize(64);
  decode(Type::kNVFP4, nvfp4.data(), out);
  EXPECT_EQ(out[0], 0x1p-9F);
  EXPECT_EQ(out[16], 448);
  EXPECT_EQ(out[32], 0);
  EXPECT_EQ(out[63], 0x1p-6F) << "the top bit is ignored";

  std::vector<std::byte> q8_0(34, std::byte{0x80});
  q8_0[0] = std::byte{0x00};
  q8_0[1] = std::byte{0x7C};  // infinity
  out.resize(32);
  decode(Type::kQ8_0, q8_0.data(), out);
  EXPECT_EQ(out[31], -INFINITY);
}

TEST(Decode, RefusesBrokenBlocksAndPlainTypes) {
  const std::vector<std::byte> bytes(64);
  std::vector<float> out(31);
  EXPECT_THROW(decode(Type::kQ8_0, bytes.data(), out), Error);
  try {
    out.resize(4);
    decode(Type::kI32, bytes.data(), out);
    FAIL() << "integers are no weights";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUnsupported);
  }
}

}  // namespace
}  // namespace strata::quant
