#include "strata/server/json_numbers.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "strata/base/error.h"
#include "strata/base/format.h"

namespace strata::server {
namespace {

using text::Grammar;
using text::GrammarNodeId;

constexpr int64_t kLargest = 999'999'999'999'999'999;
// A double tells apart all decimals of so many digits.
constexpr int kExactDigits = 15;

using Nodes = std::vector<GrammarNodeId>;

GrammarNodeId digits(Grammar& grammar, char first, char last) {
  return grammar.one_of({{static_cast<char32_t>(first), static_cast<char32_t>(last)}});
}

GrammarNodeId any_digits(Grammar& grammar, size_t min, size_t max) {
  return grammar.repeat(digits(grammar, '0', '9'), static_cast<int>(min), static_cast<int>(max));
}

// Digit strings of one length, low..high.
GrammarNodeId same_length(Grammar& grammar, std::string_view low, std::string_view high) {
  const size_t n = low.size();
  if (low.find_first_not_of('0') == std::string_view::npos &&
      high.find_first_not_of('9') == std::string_view::npos) {
    return any_digits(grammar, n, n);
  }
  if (low[0] == high[0]) {
    return grammar.sequence(
        {grammar.literal(low.substr(0, 1)), same_length(grammar, low.substr(1), high.substr(1))});
  }
  const std::string zeros(n - 1, '0');
  const std::string nines(n - 1, '9');
  char first = low[0];
  char last = high[0];
  Nodes ways;
  if (low.substr(1) != zeros) {
    ways.push_back(grammar.sequence(
        {grammar.literal(low.substr(0, 1)), same_length(grammar, low.substr(1), nines)}));
    ++first;
  }
  if (high.substr(1) != nines) {
    ways.push_back(grammar.sequence(
        {grammar.literal(high.substr(0, 1)), same_length(grammar, zeros, high.substr(1))}));
    --last;
  }
  if (first <= last) {
    ways.push_back(
        grammar.sequence({digits(grammar, first, last), any_digits(grammar, n - 1, n - 1)}));
  }
  return grammar.alternatives(ways);
}

// 0 <= low <= high, without leading zeros.
GrammarNodeId natural_range(Grammar& grammar, int64_t low, int64_t high) {
  Nodes ways;
  while (low <= high) {
    const std::string text = format("{}", low);
    // The last number of as many digits; a zero stands alone.
    int64_t last = 0;
    for (size_t i = 0; i < text.size(); ++i) last = last * 10 + 9;
    last = std::min(last, high);
    ways.push_back(same_length(grammar, text, format("{}", last)));
    if (last == high) break;
    low = last + 1;
  }
  return grammar.alternatives(ways);
}

// A number that is not negative, with where it comes from: a bound, zero, or the largest.
struct Edge {
  int64_t whole = 0;
  std::string fraction;  // digits, without zeros at the end
  bool inclusive = true;
};

bool is_below(const Edge& a, const Edge& b) {
  if (a.whole != b.whole) return a.whole < b.whole;
  if (a.fraction != b.fraction) return a.fraction < b.fraction;
  return false;
}

// Strings of up to `left` digits s with 0.s between the edges' fractions. An absent edge lets all
// pass. `started`: a digit stands in front, so that s may be empty.
class Fractions {
 public:
  explicit Fractions(Grammar& grammar) : grammar_(grammar) {}

  struct Side {
    std::string_view digits;
    bool inclusive;
  };

  std::optional<GrammarNodeId> between(const Side* low, const Side* high, size_t left,
                                       bool started) {
    if (low == nullptr && high == nullptr) {
      if (left == 0 && !started) return std::nullopt;
      return any_digits(grammar_, started ? 0 : 1, left);
    }
    Nodes ways;
    if (started && ends_inside(low, high)) ways.push_back(grammar_.nothing());
    if (left > 0) add_digits(low, high, left, ways);
    if (ways.empty()) return std::nullopt;
    return grammar_.alternatives(ways);
  }

 private:
  // Whether zeros alone may follow.
  static bool ends_inside(const Side* low, const Side* high) {
    const bool above = low == nullptr || (low->digits.empty() && low->inclusive);
    const bool below = high == nullptr || !high->digits.empty() || high->inclusive;
    return above && below;
  }

  static char first_digit(const Side& side) { return side.digits.empty() ? '0' : side.digits[0]; }
  static Side rest(const Side& side) {
    return {side.digits.empty() ? side.digits : side.digits.substr(1), side.inclusive};
  }

  void add_digits(const Side* low, const Side* high, size_t left, Nodes& ways) {
    const char first = low == nullptr ? '0' : first_digit(*low);
    const char last = high == nullptr ? '9' : first_digit(*high);
    if (first > last) return;
    const auto add = [&](char digit, const Side* low_rest, const Side* high_rest) {
      const auto more = between(low_rest, high_rest, left - 1, true);
      if (more) ways.push_back(grammar_.sequence({digits(grammar_, digit, digit), *more}));
    };
    const Side low_rest = low == nullptr ? Side{} : rest(*low);
    const Side high_rest = high == nullptr ? Side{} : rest(*high);
    const Side* const on_low = low == nullptr ? nullptr : &low_rest;
    const Side* const on_high = high == nullptr ? nullptr : &high_rest;
    if (low != nullptr && high != nullptr && first == last) {
      add(first, on_low, on_high);
      return;
    }
    char from = first;
    char to = last;
    if (low != nullptr) {
      add(first, on_low, nullptr);
      ++from;
    }
    if (high != nullptr) {
      add(last, nullptr, on_high);
      --to;
    }
    if (from <= to) {
      ways.push_back(
          grammar_.sequence({digits(grammar_, from, to), any_digits(grammar_, 0, left - 1)}));
    }
  }

  Grammar& grammar_;
};

// Numbers of one whole part with a fraction between two sides; without a fraction too if that lies
// between them.
void add_fractions(Grammar& grammar, int64_t whole, const Edge* low, const Edge* high,
                   size_t n_digits, Nodes& ways) {
  Fractions fractions(grammar);
  Fractions::Side low_side{};
  Fractions::Side high_side{};
  if (low != nullptr) low_side = {low->fraction, low->inclusive};
  if (high != nullptr) high_side = {high->fraction, high->inclusive};
  const auto digits_node =
      fractions.between(low == nullptr ? nullptr : &low_side,
                        high == nullptr ? nullptr : &high_side, n_digits, false);
  const bool above = low == nullptr || (low->fraction.empty() && low->inclusive);
  const bool below = high == nullptr || !high->fraction.empty() || high->inclusive;
  const GrammarNodeId text = grammar.literal(format("{}", whole));
  if (above && below) ways.push_back(text);
  if (digits_node) ways.push_back(grammar.sequence({text, grammar.literal("."), *digits_node}));
}

// low <= high, neither negative.
void add_magnitudes(Grammar& grammar, const Edge& low, const Edge& high, size_t n_digits,
                    Nodes& ways) {
  if (is_below(high, low)) return;
  if (low.whole == high.whole) {
    add_fractions(grammar, low.whole, &low, &high, n_digits, ways);
    return;
  }
  add_fractions(grammar, low.whole, &low, nullptr, n_digits, ways);
  add_fractions(grammar, high.whole, nullptr, &high, n_digits, ways);
  if (low.whole + 1 <= high.whole - 1) {
    Nodes parts{natural_range(grammar, low.whole + 1, high.whole - 1)};
    if (n_digits > 0) {
      parts.push_back(grammar.optional(
          grammar.sequence({grammar.literal("."), any_digits(grammar, 1, n_digits)})));
    }
    ways.push_back(grammar.sequence(parts));
  }
}

Edge edge_of(const NumberBound& bound) {
  const std::string text = format("{}", std::abs(bound.value));
  const size_t point = text.find('.');
  const size_t n_digits = text.size() - (point == std::string::npos ? 0 : 1);
  if (text.find_first_not_of("0123456789.") != std::string::npos ||
      n_digits > static_cast<size_t>(kExactDigits)) {
    throw Error(ErrorCode::kUnsupported, format("a bound of more than {} digits", kExactDigits));
  }
  Edge edge;
  edge.whole = std::stoll(text.substr(0, point));
  if (point != std::string::npos) edge.fraction = text.substr(point + 1);
  while (!edge.fraction.empty() && edge.fraction.back() == '0') edge.fraction.pop_back();
  edge.inclusive = bound.inclusive;
  return edge;
}

// Errors: kUnsupported between 2^53 and the largest number, where a double is not one integer.
int64_t clamped(double value) {
  if (value >= static_cast<double>(kLargest)) return kLargest;
  if (value <= -static_cast<double>(kLargest)) return -kLargest;
  if (std::abs(value) > 9007199254740992.0) {
    throw Error(ErrorCode::kUnsupported, "a bound of more than 53 bits");
  }
  return static_cast<int64_t>(value);
}

}  // namespace

std::optional<GrammarNodeId> integers_in(Grammar& grammar, const NumberRange& range) {
  int64_t low = -kLargest;
  int64_t high = kLargest;
  if (range.low) {
    const double up = std::ceil(range.low->value);
    if (up > static_cast<double>(kLargest)) return std::nullopt;
    low = clamped(up);
    if (!range.low->inclusive && up == range.low->value) ++low;
  }
  if (range.high) {
    const double down = std::floor(range.high->value);
    if (down < -static_cast<double>(kLargest)) return std::nullopt;
    high = clamped(down);
    if (!range.high->inclusive && down == range.high->value) --high;
  }
  if (low > high) return std::nullopt;
  Nodes ways;
  if (high >= 0) ways.push_back(natural_range(grammar, std::max<int64_t>(low, 0), high));
  if (low < 0) {
    ways.push_back(grammar.sequence(
        {grammar.literal("-"), natural_range(grammar, std::max<int64_t>(-high, 1), -low)}));
  }
  return grammar.alternatives(ways);
}

std::optional<GrammarNodeId> numbers_in(Grammar& grammar, const NumberRange& range) {
  constexpr int64_t kWholeLimit = 999'999'999'999'999;
  std::optional<Edge> low;
  std::optional<Edge> high;
  if (range.low) low = edge_of(*range.low);
  if (range.high) high = edge_of(*range.high);
  size_t n_digits = kExactDigits - 1;
  for (const std::optional<Edge>& edge : {low, high}) {
    if (!edge) continue;
    n_digits = std::min(n_digits, kExactDigits - format("{}", edge->whole).size());
  }
  const Edge zero{0, "", true};
  const Edge above_zero{0, "", false};
  const Edge largest{kWholeLimit, "", true};
  const bool low_negative = !range.low || range.low->value < 0;
  const bool high_negative = range.high && range.high->value < 0;
  Nodes ways;
  if (!high_negative) {
    add_magnitudes(grammar, low_negative ? zero : *low, high ? *high : largest, n_digits, ways);
  }
  if (low_negative) {
    Nodes negative;
    add_magnitudes(grammar, high_negative ? *high : above_zero, low ? *low : largest, n_digits,
                   negative);
    if (!negative.empty()) {
      ways.push_back(grammar.sequence({grammar.literal("-"), grammar.alternatives(negative)}));
    }
  }
  if (ways.empty()) return std::nullopt;
  return grammar.alternatives(ways);
}

}  // namespace strata::server
