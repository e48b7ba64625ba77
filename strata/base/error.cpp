#include "strata/base/error.h"

#include <algorithm>
#include <array>
#include <utility>

#include "strata/base/check.h"

namespace strata {
namespace {

struct Row {
  ErrorCode code;
  std::string_view name;
  ExitStatus exit;
};

// By exit status; of those that share one the first says what it means.
constexpr std::array kTable = {
    Row{ErrorCode::kInvalidArgument, "invalid_argument", {64, "a setting that cannot be"}},
    Row{ErrorCode::kCorruptFile, "corrupt_file", {65, "a damaged file"}},
    Row{ErrorCode::kNotFound, "not_found", {66, "a file that is not there"}},
    Row{ErrorCode::kUnsupported, "unsupported", {69, "not supported"}},
    Row{ErrorCode::kInternal, "internal", {70, "an internal error"}},
    Row{ErrorCode::kDevice, "device", {70, "an operation of a device failed"}},
    Row{ErrorCode::kDeviceLost, "device_lost", {70, "a device was lost"}},
    Row{ErrorCode::kCancelled, "cancelled", {70, "it was cancelled"}},
    Row{ErrorCode::kResourceExhausted, "resource_exhausted", {71, "not enough memory"}},
    Row{ErrorCode::kIo, "io", {74, "an input or output error"}},
};

const Row& row(ErrorCode code) {
  const auto at = std::ranges::find(kTable, code, &Row::code);
  STRATA_CHECK(at != kTable.end());
  return *at;
}

}  // namespace

std::string_view name(ErrorCode code) { return row(code).name; }
int exit_code(ErrorCode code) { return row(code).exit.status; }
std::string_view words(ErrorCode code) { return row(code).exit.words; }

std::vector<ExitStatus> exit_statuses() {
  std::vector<ExitStatus> result;
  for (const Row& each : kTable) {
    if (result.empty() || result.back().status != each.exit.status) result.push_back(each.exit);
  }
  return result;
}

Error::Error(ErrorCode code, std::string message, SourceLocation where)
    : code_(code), message_(std::move(message)), text_(message_), where_(where) {}

Error& Error::with(std::string context) {
  text_ = std::move(context) + ": " + text_;
  return *this;
}

}  // namespace strata
