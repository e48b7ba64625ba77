#include "strata/cli/synth_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/random_bits.h"
#include "strata/quant/decode.h"
#include "strata/quant/half.h"

namespace strata::cli {

enum class Scale : uint8_t { kNone, kHalf, kScattered, kExponent, kSmallFloat };

// Where the scale of a block lies.
struct BlockForm {
  quant::Type type;
  Scale scale;
  int at;
  // Of types with a second f16: its place, and its size against the scale so that the mean is 0.
  int offset_at = -1;
  double offset = 0;
};

namespace {

using quant::Type;

constexpr BlockForm kForms[] = {
    {Type::kF32, Scale::kNone, 0},
    {Type::kF16, Scale::kNone, 0},
    {Type::kBF16, Scale::kNone, 0},
    {Type::kQ4_0, Scale::kHalf, 0},
    {Type::kQ4_1, Scale::kHalf, 0, 2, -7.5},
    {Type::kQ5_0, Scale::kHalf, 0},
    {Type::kQ5_1, Scale::kHalf, 0, 2, -15.5},
    {Type::kQ8_0, Scale::kHalf, 0},
    {Type::kQ2_K, Scale::kHalf, 80, 82, 1.5},
    {Type::kQ3_K, Scale::kHalf, 108},
    {Type::kQ4_K, Scale::kHalf, 0, 2, 7.5},
    {Type::kQ5_K, Scale::kHalf, 0, 2, 15.5},
    {Type::kQ6_K, Scale::kHalf, 208},
    {Type::kIQ1_S, Scale::kHalf, 0},
    {Type::kIQ1_M, Scale::kScattered, 48},
    {Type::kIQ2_XXS, Scale::kHalf, 0},
    {Type::kIQ2_XS, Scale::kHalf, 0},
    {Type::kIQ2_S, Scale::kHalf, 0},
    {Type::kIQ3_XXS, Scale::kHalf, 0},
    {Type::kIQ3_S, Scale::kHalf, 0},
    {Type::kIQ4_NL, Scale::kHalf, 0},
    {Type::kIQ4_XS, Scale::kHalf, 0},
    {Type::kMXFP4, Scale::kExponent, 0},
    {Type::kNVFP4, Scale::kSmallFloat, 0},
    {Type::kQ1_0, Scale::kHalf, 0},
    {Type::kQ2_0, Scale::kHalf, 0},
};

const BlockForm* find_form(Type type) {
  const auto* found = std::find_if(std::begin(kForms), std::end(kForms),
                                   [&](const BlockForm& form) { return form.type == type; });
  return found == std::end(kForms) ? nullptr : found;
}

void store(std::byte* at, uint16_t value) { std::memcpy(at, &value, sizeof value); }

uint16_t nearest_small_float(double value) {
  uint16_t best = 1;
  for (uint16_t code = 1; code < 0x7F; ++code) {
    const auto error = [&](uint16_t c) {
      return std::abs(quant::ue4m3_to_f32(static_cast<uint8_t>(c)) - value);
    };
    if (error(code) < error(best)) best = code;
  }
  return best;
}

// Of the values that the blocks stand for.
double root_mean_square(Type type, std::span<const std::byte> blocks, size_t n_values) {
  std::vector<float> values(n_values);
  quant::decode(type, blocks.data(), values);
  double sum = 0;
  for (const float x : values) sum += static_cast<double>(x) * x;
  return std::sqrt(sum / static_cast<double>(n_values));
}

}  // namespace

RandomBlocks::RandomBlocks(Type type, double deviation, uint64_t key)
    : traits_(quant::traits(type)), form_(find_form(type)), key_(key) {
  if (form_ == nullptr) {
    throw Error(ErrorCode::kInvalidArgument, format("{} is no type for weights", traits_.name));
  }
  if (form_->scale == Scale::kNone) {
    // An even distribution over +-a has the deviation a / sqrt(3).
    step_ = static_cast<float>(deviation * std::sqrt(3.0) / 32768.0);
    return;
  }
  // How far the codes spread under a scale of 1 is measured, not known by heart.
  constexpr size_t kSample = 512;
  std::vector<std::byte> blocks(kSample * static_cast<size_t>(traits_.block_bytes));
  set_scales(1);
  fill(0, blocks);
  const size_t n_values = kSample * static_cast<size_t>(traits_.block_values);
  set_scales(deviation / root_mean_square(type, blocks, n_values));
}

void RandomBlocks::set_scales(double unit) {
  for (size_t i = 0; i < scale_.size(); ++i) {
    const double size = unit * (0.7 + 0.6 * static_cast<double>(i / 2) / 127.0);
    // The codes of some types are not centred: a sign takes the mean away.
    const double scale = i % 2 == 0 ? size : -size;
    switch (form_->scale) {
      case Scale::kExponent:
        scale_[i] =
            static_cast<uint16_t>(std::clamp(127.0 + std::round(std::log2(unit)), 1., 254.));
        break;
      case Scale::kSmallFloat:
        scale_[i] = nearest_small_float(size);
        break;
      default:
        scale_[i] = quant::f32_to_f16(static_cast<float>(scale));
        offset_[i] = quant::f32_to_f16(static_cast<float>(scale * form_->offset));
    }
  }
}

void RandomBlocks::fix(std::byte* block) const {
  const BlockForm& form = *form_;
  std::byte* at = block + form.at;
  const auto chosen = [&](int i) { return static_cast<size_t>(at[i]); };
  switch (form.scale) {
    case Scale::kNone:
      break;
    case Scale::kHalf: {
      const size_t i = chosen(0);
      store(at, scale_[i]);
      if (form.offset_at >= 0) store(block + form.offset_at, offset_[i]);
      break;
    }
    case Scale::kScattered: {
      // A quarter of the scale in the upper half of each odd byte.
      const uint16_t bits = scale_[chosen(0)];
      for (int i = 0; i < 4; ++i) {
        const auto nibble = static_cast<std::byte>((bits >> (4 * i)) & 15);
        at[2 * i + 1] = (at[2 * i + 1] & std::byte{15}) | (nibble << 4);
      }
      break;
    }
    case Scale::kExponent:
      *at = static_cast<std::byte>(scale_[chosen(0)]);
      break;
    case Scale::kSmallFloat:
      for (int i = 0; i < 4; ++i) at[i] = static_cast<std::byte>(scale_[chosen(i)]);
      break;
  }
}

void RandomBlocks::fill(uint64_t first, std::span<std::byte> out) const {
  STRATA_CHECK(first % kGranule == 0);
  const size_t block = static_cast<size_t>(traits_.block_bytes);
  uint64_t counter = first * block / sizeof(uint64_t);
  size_t at = 0;
  for (; at + sizeof(uint64_t) <= out.size(); at += sizeof(uint64_t)) {
    const uint64_t bits = random_bits(key_, counter++);
    std::memcpy(out.data() + at, &bits, sizeof bits);
  }
  const uint64_t last = random_bits(key_, counter);
  std::memcpy(out.data() + at, &last, out.size() - at);

  if (step_ == 0) {
    for (at = 0; at + block <= out.size(); at += block) fix(out.data() + at);
    return;
  }
  for (at = 0; at + block <= out.size(); at += block) {
    int16_t integer = 0;
    std::memcpy(&integer, out.data() + at, sizeof integer);
    const float value = (static_cast<float>(integer) + 0.5F) * step_;
    if (traits_.type == Type::kF32) {
      std::memcpy(out.data() + at, &value, sizeof value);
    } else {
      store(out.data() + at,
            traits_.type == Type::kF16 ? quant::f32_to_f16(value) : quant::f32_to_bf16(value));
    }
  }
}

}  // namespace strata::cli
