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
  const auto add = [&](size_t point) {
    const auto apart = [&](size_t other) {
      return std::max(point, other) - std::min(point, other) >= PrefixCache::kLeastTokens;
    };
    if (point < text.size() && point > n_cached && apart(n_cached) &&
        std::ranges::all_of(points, apart)) {
      points.push_back(point);
    }
  };
  add(n_common);
  add(last_message(text, boundaries, tokenizer));
  if (!boundaries.empty() && boundaries.front() > 0) add(static_cast<size_t>(boundaries.front()));
  const size_t least = std::max(kSpacing, text.size() / kSpaces);
  const size_t spacing = (least + chunk - 1) / chunk * chunk;
  for (size_t point = n_cached + spacing; point < text.size(); point += spacing) add(point);
  std::ranges::sort(points);
  return points;
}

}  // namespace strata::engine
