#include "strata/engine/keep_points.h"

#include <algorithm>

#include "strata/engine/prefix_cache.h"

namespace strata::engine {
namespace {

constexpr size_t kSpacing = 512, kSpaces = 8;

// 0: none is known.
size_t last_message(std::span<const int32_t> text, std::span<const int32_t> boundaries,
                    const text::Tokenizer& tokenizer) {
  if (!boundaries.empty()) {
    const int32_t last = boundaries.back();
    return last > 0 && static_cast<size_t>(last) < text.size() ? static_cast<size_t>(last) : 0;
  }
  const auto is_control = [&](int32_t id) {
    return tokenizer.contains(id) && tokenizer.is_control(id);
  };
  for (size_t i = text.size() - 1; i > 0; --i) {
    if (is_control(text[i]) && !is_control(text[i - 1])) return i;
  }
  return 0;
}

}  // namespace

std::vector<size_t> keep_points(std::span<const int32_t> text, std::span<const int32_t> boundaries,
                                size_t n_cached, size_t n_common, size_t chunk,
                                const text::Tokenizer& tokenizer) {
  std::vector<size_t> points;
  const auto apart = [](size_t a, size_t b) {
    return std::max(a, b) - std::min(a, b) >= PrefixCache::kLeastTokens;
  };
  const auto is_new = [&](size_t point) {
    return point < text.size() && point > n_cached && apart(point, n_cached);
  };
  const auto add = [&](size_t point) {
    const auto apart_from = [&](size_t other) { return apart(point, other); };
    if (is_new(point) && std::ranges::all_of(points, apart_from)) points.push_back(point);
  };
  add(n_common);
  add(last_message(text, boundaries, tokenizer));
  // However short the next message is: others begin with this one.
  const auto first = static_cast<size_t>(boundaries.empty() ? 0 : std::max(boundaries.front(), 0));
  if (is_new(first) && std::ranges::find(points, first) == points.end()) points.push_back(first);
  const size_t least = std::max(kSpacing, text.size() / kSpaces);
  const size_t spacing = (least + chunk - 1) / chunk * chunk;
  for (size_t point = n_cached + spacing; point < text.size(); point += spacing) add(point);
  std::ranges::sort(points);
  return points;
}

}  // namespace strata::engine
