#include "strata/base/error.h"

#include <utility>

namespace strata {

std::string_view name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kCorruptFile:
      return "corrupt_file";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kDevice:
      return "device";
    case ErrorCode::kDeviceLost:
      return "device_lost";
    case ErrorCode::kInternal:
      return "internal";
    case ErrorCode::kResourceExhausted:
      return "resource_exhausted";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kDeadline:
      return "deadline";
  }
  return "internal";
}

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return 64;
    case ErrorCode::kCorruptFile:
      return 65;
    case ErrorCode::kNotFound:
      return 66;
    case ErrorCode::kUnsupported:
      return 69;
    case ErrorCode::kResourceExhausted:
      return 71;
    case ErrorCode::kIo:
      return 74;
    default:
      return 70;
  }
}

Error::Error(ErrorCode code, std::string message, SourceLocation where)
    : code_(code), message_(std::move(message)), text_(message_), where_(where) {}

Error& Error::with(std::string context) {
  text_ = std::move(context) + ": " + text_;
  return *this;
}

}  // namespace strata
