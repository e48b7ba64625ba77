#include "strata/device/sim/sim_faults.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "strata/base/check.h"
#include "strata/base/format.h"

namespace strata::device {
namespace {

constexpr std::pair<std::string_view, FaultPoint> kPoints[] = {{"allocate", FaultPoint::kAllocate},
                                                               {"copy", FaultPoint::kCopy},
                                                               {"launch", FaultPoint::kLaunch},
                                                               {"run", FaultPoint::kRun},
                                                               {"hang", FaultPoint::kHang}};

constexpr ErrorCode kCodes[] = {
    ErrorCode::kInvalidArgument, ErrorCode::kCorruptFile, ErrorCode::kNotFound,
    ErrorCode::kUnsupported,     ErrorCode::kDevice,      ErrorCode::kDeviceLost,
    ErrorCode::kInternal,        ErrorCode::kIo,          ErrorCode::kResourceExhausted,
    ErrorCode::kCancelled};

const char* call_of(FaultPoint point) {
  switch (point) {
    case FaultPoint::kAllocate:
      return "allocate (injected)";
    case FaultPoint::kCopy:
      return "copy (injected)";
    case FaultPoint::kLaunch:
      return "launch (injected)";
    case FaultPoint::kRun:
    case FaultPoint::kHang:
      return "queued work (injected)";
  }
  return "?";
}

[[noreturn]] void refuse(std::string_view text, const char* why) {
  throw Error(ErrorCode::kInvalidArgument,
              format("fault rule '{}': {}; a rule is point#nth[xTIMES][:code], as in "
                     "launch#500:device_lost",
                     text, why));
}

uint64_t parse_count(std::string_view number, std::string_view text) {
  uint64_t n = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), n);
  if (error != std::errc() || end != number.data() + number.size() || n == 0) {
    refuse(text, "not a count from 1");
  }
  return n;
}

}  // namespace

FaultRule parse_fault_rule(std::string_view text) {
  FaultRule rule;
  std::string_view rest = text;
  const size_t colon = rest.find(':');
  if (colon != std::string_view::npos) {
    const std::string_view code = rest.substr(colon + 1);
    const auto* const found = std::find_if(std::begin(kCodes), std::end(kCodes),
                                           [&](ErrorCode each) { return name(each) == code; });
    if (found == std::end(kCodes)) refuse(text, "an unknown code");
    rule.code = *found;
    rest = rest.substr(0, colon);
  }
  const size_t hash = rest.find('#');
  const auto* const point = std::find_if(std::begin(kPoints), std::end(kPoints), [&](auto& each) {
    return each.first == rest.substr(0, hash);
  });
  if (point == std::end(kPoints)) refuse(text, "an unknown point");
  rule.point = point->second;
  if (hash == std::string_view::npos) refuse(text, "no count");
  rest = rest.substr(hash + 1);
  const size_t x = rest.find('x');
  rule.nth = parse_count(rest.substr(0, x), text);
  if (x != std::string_view::npos) rule.times = parse_count(rest.substr(x + 1), text);
  return rule;
}

void SimFaults::add(const FaultRule& rule) {
  STRATA_CHECK(rule.nth > 0 && rule.times > 0);
  rules_.push_back({.rule = rule, .first = n_passed(rule.point) + rule.nth});
}

void SimFaults::clear() {
  rules_.clear();
  resume();
}

std::optional<Fault> SimFaults::pass(FaultPoint point) {
  const uint64_t n = ++passed_[static_cast<size_t>(point)];
  Fault fault{.code = ErrorCode::kDeviceLost, .call = call_of(point), .device = device_};
  if (lost_) return fault;
  for (const Active& each : rules_) {
    if (each.rule.point != point || n < each.first || n - each.first >= each.rule.times) continue;
    fault.code = each.rule.code;
    lost_ = fault.code == ErrorCode::kDeviceLost;
    hangs_ = hangs_ || point == FaultPoint::kHang;
    return fault;
  }
  return std::nullopt;
}

}  // namespace strata::device
