#include "strata/quant/tiles.h"

#include <cstring>

#include "strata/base/check.h"

namespace strata::quant {
namespace {

constexpr size_t kHalf = 2;
constexpr size_t kWord = 4;
constexpr size_t kLanes = kTileRows;

// Calls half(tile offset, block offset) for each f16 and word(tile offset, block offset) for each
// word of block b, as they lie for row 0.
template <class OnHalf, class OnWord>
void for_parts(const TileForm& form, size_t n_blocks, size_t b, const OnHalf& on_half,
               const OnWord& on_word) {
  const auto n_halves = static_cast<size_t>(form.n_halves);
  const auto n_words = static_cast<size_t>(form.n_words);
  for (size_t h = 0; h < n_halves; ++h) {
    on_half((b * n_halves + h) * kLanes * kHalf, static_cast<size_t>(form.half_offset[h]));
  }
  const size_t words = n_blocks * n_halves * kLanes * kHalf + b * n_words * kLanes * kWord;
  // Scales stand together, at one end of the block.
  size_t at = form.half_offset[0] == 0 ? n_halves * kHalf : 0;
  for (size_t w = 0; w < n_words; ++w, at += kWord) on_word(words + w * kLanes * kWord, at);
}

}  // namespace

TileForm tile_form(Type type) {
  const TypeTraits& t = traits(type);
  TileForm form;
  switch (type) {
    using enum Type;
    case kQ4_0:
    case kQ5_0:
    case kQ8_0:
    case kIQ2_XXS:
    case kIQ2_XS:
    case kIQ2_S:
    case kIQ3_XXS:
    case kIQ3_S:
    case kIQ1_S:
    case kIQ4_NL:
    case kQ1_0:
    case kQ2_0:
      form = {.n_halves = 1, .half_offset = {0}};
      break;
    case kQ4_1:
    case kQ5_1:
    case kQ4_K:
    case kQ5_K:
      form = {.n_halves = 2, .half_offset = {0, 2}};
      break;
    case kIQ4_XS:  // d, then two bytes of scales: a word like any other would not be whole
      form = {.n_halves = 2, .half_offset = {0, 2}};
      break;
    case kQ2_K:
      form = {.n_halves = 2, .half_offset = {80, 82}};
      break;
    case kQ3_K:
      form = {.n_halves = 1, .half_offset = {108}};
      break;
    case kQ6_K:
      form = {.n_halves = 1, .half_offset = {208}};
      break;
    default:
      return {};
  }
  const int rest = t.block_bytes - form.n_halves * static_cast<int>(kHalf);
  STRATA_CHECK(rest % static_cast<int>(kWord) == 0);
  form.n_words = rest / static_cast<int>(kWord);
  return form;
}

void to_tile(Type type, int64_t cols, const std::byte* rows, std::byte* tile) {
  const TileForm form = tile_form(type);
  STRATA_CHECK(form);
  const size_t row = row_bytes(type, static_cast<uint64_t>(cols));
  const auto block = static_cast<size_t>(traits(type).block_bytes);
  const size_t n_blocks = row / block;
  for (size_t b = 0; b < n_blocks; ++b) {
    const std::byte* from = rows + b * block;
    for_parts(
        form, n_blocks, b,
        [&](size_t to, size_t at) {
          for (size_t r = 0; r < kLanes; ++r) {
            std::memcpy(tile + to + r * kHalf, from + r * row + at, kHalf);
          }
        },
        [&](size_t to, size_t at) {
          for (size_t r = 0; r < kLanes; ++r) {
            std::memcpy(tile + to + r * kWord, from + r * row + at, kWord);
          }
        });
  }
}

void block_of_tile(const TileForm& form, int n_blocks, const std::byte* tile, int b, int r,
                   std::byte* block) {
  const auto lane = static_cast<size_t>(r);
  for_parts(
      form, static_cast<size_t>(n_blocks), static_cast<size_t>(b),
      [&](size_t from, size_t at) { std::memcpy(block + at, tile + from + lane * kHalf, kHalf); },
      [&](size_t from, size_t at) { std::memcpy(block + at, tile + from + lane * kWord, kWord); });
}

void row_of_tile(Type type, int64_t cols, const std::byte* tile, int r, std::byte* row) {
  const TileForm form = tile_form(type);
  STRATA_CHECK(form);
  const auto block = static_cast<size_t>(traits(type).block_bytes);
  const auto n_blocks = static_cast<int>(row_bytes(type, static_cast<uint64_t>(cols)) / block);
  for (int b = 0; b < n_blocks; ++b) {
    block_of_tile(form, n_blocks, tile, b, r, row + static_cast<size_t>(b) * block);
  }
}

}  // namespace strata::quant
