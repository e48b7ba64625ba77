#include "strata/device/sim/sim_card.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"

namespace strata::device {
namespace {

// The ring through which pageable memory is copied.
constexpr Bytes kSmallRing = Bytes{256} << 10;

constexpr std::string_view kKeys[] = {"used", "budget", "link",       "vram",   "peer",
                                      "pin",  "fail",   "graph_node", "launch", "copy"};

[[noreturn]] void refuse(std::string_view word, std::string_view why) {
  throw Error(ErrorCode::kInvalidArgument, format("{}: {}", word, why));
}

Bytes size_of(std::string_view word, std::string_view value) {
  if (value == "0") return 0;
  const std::optional<Bytes> bytes = parse_bytes(value);
  if (!bytes) refuse(word, "not a size such as 8GiB, 512MiB or 4096");
  return *bytes;
}

// A number and one of the units, whose meaning is multiplied.
double measure(std::string_view word, std::string_view value,
               std::initializer_list<std::pair<std::string_view, double>> units) {
  double n = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), n);
  const std::string_view unit(end, static_cast<size_t>(value.data() + value.size() - end));
  for (const auto& [text, factor] : units) {
    if (error == std::errc() && unit == text && std::isfinite(n)) return n * factor;
  }
  std::string known;
  for (const auto& [text, factor] : units)
    known += format("{}12{}", known.empty() ? "" : ", ", text);
  refuse(word, format("not like {}", known));
}

// What a probe of a broken link says may be read, too: nobody takes it for a rate.
double rate_of(std::string_view word, std::string_view value) {
  return measure(word, value, {{"GB/s", 1e9}, {"MB/s", 1e6}});
}

std::chrono::nanoseconds time_of(std::string_view word, std::string_view value) {
  const double ns = measure(word, value, {{"us", 1e3}, {"ms", 1e6}, {"ns", 1}});
  if (!(ns >= 0 && ns < 1e15)) refuse(word, "not a time");
  return std::chrono::nanoseconds(static_cast<int64_t>(ns));
}

bool yes_of(std::string_view word, std::string_view value) {
  if (value != "yes" && value != "no") refuse(word, "yes or no");
  return value == "yes";
}

}  // namespace

std::optional<Bytes> parse_bytes(std::string_view text) {
  constexpr std::pair<std::string_view, int> kUnits[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
  int shift = 0;
  for (const auto& [unit, bits] : kUnits) {
    if (!text.ends_with(unit)) continue;
    shift = bits;
    text.remove_suffix(unit.size());
    break;
  }
  Bytes n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  if (n == 0 || n > std::numeric_limits<Bytes>::max() >> shift) return {};
  return n << shift;
}

bool is_sim_word(std::string_view word) {
  if (word == "display" || is_fault_rule(word)) return true;
  for (const std::string_view key : kKeys) {
    if (word.size() > key.size() && word.starts_with(key) && word[key.size()] == '=') return true;
  }
  return false;
}

void SimCard::add(std::string_view word) {
  if (is_fault_rule(word)) return rules.push_back(parse_fault_rule(word));
  if (word == "display") {
    facts.display = true;
    return;
  }
  const size_t equals = word.find('=');
  const std::string_view key = word.substr(0, equals), value = word.substr(equals + 1);
  if (key == "used") {
    used_by_others = size_of(word, value);
  } else if (key == "budget") {
    facts.os_budget = size_of(word, value);
  } else if (key == "link") {
    facts.link_rate = rate_of(word, value);
  } else if (key == "vram") {
    facts.memory_rate = rate_of(word, value);
  } else if (key == "peer") {
    peers = yes_of(word, value);
  } else if (key == "pin") {
    pinned_limit = value == "no" ? kSmallRing : size_of(word, value);
  } else if (key == "graph_node") {
    graph_node_bytes = size_of(word, value);
  } else if (key == "launch") {
    launch_time = time_of(word, value);
  } else if (key == "copy") {
    copy_time = time_of(word, value);
  } else {
    refuse(word, "faults are written in words, as in 'hang copy #3'");
  }
}

}  // namespace strata::device
