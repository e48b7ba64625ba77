#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "strata/base/source_location.h"

namespace strata {

// What went wrong, as far as the caller's next step depends on it. The table of exit codes and
// HTTP replies is in docs/architecture.md.
enum class ErrorCode {
  kInvalidArgument,    // the user's value: exit 64, HTTP 400
  kCorruptFile,        // bytes that are not what they claim: exit 65
  kNotFound,           // exit 66, HTTP 404
  kUnsupported,        // well-formed, not handled here: exit 69, HTTP 400
  kDevice,             // an operation failed; the process stays
  kDeviceLost,         // the process leaves with 70
  kInternal,           // our fault: exit 70, HTTP 500
  kResourceExhausted,  // memory, slots: exit 71, HTTP 503
  kIo,                 // the operating system said no: exit 74
  kCancelled,          // no reply
  kDeadline,           // HTTP 504
};

std::string_view name(ErrorCode code);
int exit_code(ErrorCode code);

// The one exception type. what() reads "outermost context: ...: message".
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message, SourceLocation where = SourceLocation::current());

  // Adds the surrounding operation, e.g. "loading m.gguf". Call it while rethrowing.
  Error& with(std::string context);

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const SourceLocation& where() const { return where_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  ErrorCode code_;
  std::string message_;
  std::string text_;
  SourceLocation where_;
};

}  // namespace strata
