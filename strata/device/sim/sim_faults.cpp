#include "strata/device/sim/sim_faults.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "strata/base/check.h"
#include "strata/base/format.h"
#include "strata/device/sim/sim_card.h"

namespace strata::device {
namespace {

constexpr std::pair<std::string_view, FaultPoint> kPoints[] = {
    {"alloc", FaultPoint::kAllocate},  {"pin", FaultPoint::kPin},
    {"capture", FaultPoint::kCapture}, {"graph_instantiate", FaultPoint::kInstantiate},
    {"copy", FaultPoint::kCopy},       {"launch", FaultPoint::kLaunch},
    {"replay", FaultPoint::kReplay},   {"run", FaultPoint::kRun}};

constexpr ErrorCode kCodes[] = {
    ErrorCode::kInvalidArgument, ErrorCode::kCorruptFile, ErrorCode::kNotFound,
    ErrorCode::kUnsupported,     ErrorCode::kDevice,      ErrorCode::kDeviceLost,
    ErrorCode::kInternal,        ErrorCode::kIo,          ErrorCode::kResourceExhausted,
    ErrorCode::kCancelled};

const char* call_of(FaultPoint point) {
  switch (point) {
    case FaultPoint::kAllocate:
      return "allocate (injected)";
    case FaultPoint::kPin:
      return "pin (injected)";
    case FaultPoint::kCapture:
      return "begin_capture (injected)";
    case FaultPoint::kInstantiate:
      return "graph_instantiate (injected)";
    case FaultPoint::kCopy:
      return "copy (injected)";
    case FaultPoint::kLaunch:
      return "launch (injected)";
    case FaultPoint::kReplay:
      return "replay (injected)";
    case FaultPoint::kRun:
      return "queued work (injected)";
  }
  return "?";
}

// Reads words one after the other.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text), rest_(text) {}

  bool done() { return peek().empty(); }
  std::string_view peek() const {
    const size_t begin = std::min(rest_.find_first_not_of(' '), rest_.size());
    return rest_.substr(begin, rest_.find(' ', begin) - begin);
  }
  std::string_view next() {
    const std::string_view word = peek();
    if (word.empty()) refuse("it ends too early");
    rest_.remove_prefix(static_cast<size_t>(word.data() + word.size() - rest_.data()));
    return word;
  }
  bool take(std::string_view word) {
    if (peek() != word) return false;
    next();
    return true;
  }
  void want(std::string_view word) {
    if (!take(word)) refuse(format("'{}' is missing", word));
  }
  // "64MiB" or "64 MiB".
  Bytes size() {
    std::string text(next());
    if (const std::string_view unit = peek(); unit == "KiB" || unit == "MiB" || unit == "GiB") {
      text += next();
    }
    const std::optional<Bytes> bytes = parse_bytes(text);
    if (!bytes) refuse(format("'{}' is no size", text));
    return *bytes;
  }
  uint64_t count(std::string_view number) const {
    uint64_t n = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), n);
    if (error != std::errc() || end != number.data() + number.size() || n == 0) {
      refuse(format("'{}' is no count from 1", number));
    }
    return n;
  }
  std::chrono::nanoseconds seconds() {
    const std::string_view word = next();
    double n = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), n);
    constexpr double kMost = 1e6;
    if (error != std::errc() || std::string_view(end, word.data() + word.size()) != "s" ||
        !(n > 0 && n < kMost)) {
      refuse(format("'{}' is no time such as 1.5s", word));
    }
    return std::chrono::nanoseconds(static_cast<int64_t>(n * 1e9));
  }
  FaultPoint point() {
    const std::string_view word = next();
    for (const auto& [text, point] : kPoints) {
      if (text == word) return point;
    }
    refuse(
        format("'{}' is none of alloc, pin, capture, graph_instantiate, copy, launch, replay, "
               "run",
               word));
  }
  ErrorCode code() {
    const std::string_view word = next();
    if (word == "out_of_memory") return ErrorCode::kResourceExhausted;
    for (const ErrorCode each : kCodes) {
      if (name(each) == word) return each;
    }
    refuse(format("'{}' is no code", word));
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::kInvalidArgument,
                format("fault rule '{}': {}; a rule is like 'fail alloc #7 with out_of_memory' or "
                       "'hang copy #3'",
                       text_, why));
  }

 private:
  std::string_view text_, rest_;
};

bool asks_for_memory(FaultPoint point) {
  return point == FaultPoint::kAllocate || point == FaultPoint::kPin ||
         point == FaultPoint::kInstantiate;
}

// What a rule does, and where.
FaultRule parse_action(Words& words) {
  FaultRule rule;
  if (words.take("fail")) {
    rule.point = words.point();
  } else if (words.take("hang")) {
    rule.action = FaultAction::kHang;
    rule.point = words.point();
  } else if (words.take("freeze")) {
    rule.action = FaultAction::kFreeze;
    rule.point = words.point();
  } else if (words.take("others")) {
    words.want("use");
    rule.action = FaultAction::kOthers;
    rule.others = words.size();
    words.want("at");
    rule.point = words.point();
  } else if (words.take("device")) {
    words.want("lost");
    words.want("at");
    rule.point = words.point();
    rule.code = ErrorCode::kDeviceLost;
    return rule;
  } else {
    rule.point = words.point();
    words.want("fails");
    rule.times = FaultRule::kAlways;
  }
  if (asks_for_memory(rule.point)) rule.code = ErrorCode::kResourceExhausted;
  return rule;
}

}  // namespace

bool is_fault_rule(std::string_view text) {
  for (const std::string_view begin : {"fail ", "hang ", "freeze ", "device ", "others "}) {
    if (text.starts_with(begin)) return true;
  }
  return text.find(" fails") != std::string_view::npos;
}

FaultRule parse_fault_rule(std::string_view text) {
  Words words(text);
  FaultRule rule = parse_action(words);
  bool counted = rule.times == FaultRule::kAlways;
  while (!words.done()) {
    if (words.take("with")) {
      rule.code = words.code();
    } else if (words.take("of")) {
      if (words.take("at")) {
        words.want("least");
        rule.at_least = words.size();
      } else {
        rule.op = words.next();
      }
    } else if (words.take("while")) {
      words.want("free");
      words.want("<");
      rule.while_free = words.size();
    } else if (words.take("after")) {
      words.want("start");
      rule.after_start = true;
    } else if (rule.action == FaultAction::kFreeze && words.take("for")) {
      rule.freeze = words.seconds();
    } else if (words.peek().starts_with('#')) {
      rule.nth = words.count(words.next().substr(1));
      if (counted) rule.times = 1;
      counted = true;
    } else if (words.take("x*")) {
      rule.times = FaultRule::kAlways;
    } else if (words.peek().starts_with('x')) {
      rule.times = words.count(words.next().substr(1));
    } else {
      words.refuse(format("'{}' is not understood", words.peek()));
    }
  }
  if (!counted) words.refuse("which one, as in #3?");
  if (rule.action == FaultAction::kFreeze && rule.freeze.count() == 0) {
    words.refuse("for how long, as in 'for 2s'?");
  }
  const bool is_work = rule.point == FaultPoint::kCopy || rule.point == FaultPoint::kLaunch ||
                       rule.point == FaultPoint::kRun;
  if ((rule.action == FaultAction::kHang || rule.action == FaultAction::kFreeze) && !is_work) {
    words.refuse("only copy, launch and run take time");
  }
  return rule;
}

void SimFaults::add(const FaultRule& rule) {
  STRATA_CHECK(rule.nth > 0 && rule.times > 0);
  rules_.push_back({.rule = rule});
}

void SimFaults::clear() {
  rules_.clear();
  resume();
}

bool SimFaults::is_about(const FaultRule& rule, FaultPoint point, const Site& site) const {
  return rule.point == point && (!rule.after_start || started_) &&
         (rule.op.empty() || rule.op == site.op) && site.bytes >= rule.at_least &&
         (rule.while_free == 0 || site.free < rule.while_free);
}

SimFaults::Verdict SimFaults::pass(FaultPoint point, const Site& site) {
  ++passed_[static_cast<size_t>(point)];
  ++passed_by_op_[{point, site.op}];
  Verdict verdict;
  Fault fault{.code = ErrorCode::kDeviceLost,
              .call = call_of(point),
              .device = device_,
              .asked = site.bytes,
              .free = site.free};
  if (lost_) {
    verdict.fault = fault;
    return verdict;
  }
  for (Active& each : rules_) {
    const FaultRule& rule = each.rule;
    if (!is_about(rule, point, site)) continue;
    const uint64_t n = ++each.n;
    if (verdict.fault || n < rule.nth || n - rule.nth >= rule.times) continue;
    switch (rule.action) {
      case FaultAction::kFail:
        fault.code = rule.code;
        verdict.fault = fault;
        lost_ = fault.code == ErrorCode::kDeviceLost;
        break;
      case FaultAction::kHang:
        verdict.hang = true;
        break;
      case FaultAction::kFreeze:
        verdict.freeze = rule.freeze;
        break;
      case FaultAction::kOthers:
        others_ = rule.others;
        break;
    }
  }
  return verdict;
}

}  // namespace strata::device
