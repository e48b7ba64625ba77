#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "strata/base/source_location.h"

namespace strata {

// What went wrong, as far as the caller's next step depends on it. Exit statuses and words are one
// table in error.cpp; docs/architecture.md shows it with the HTTP replies.
enum class ErrorCode {
  kInvalidArgument,    // the user's value
  kCorruptFile,        // bytes that are not what they claim
  kNotFound,           // a file or a name
  kUnsupported,        // well-formed, not handled here
  kDevice,             // an operation failed; the process stays
  kDeviceLost,         // the process leaves
  kInternal,           // our fault
  kResourceExhausted,  // memory, slots
  kIo,                 // the operating system said no
  kCancelled,          // no reply
};

std::string_view name(ErrorCode code);
// What a program leaves with, and what that means in plain words: "not enough memory".
int exit_code(ErrorCode code);
std::string_view words(ErrorCode code);

struct ExitStatus {
  int status = 0;
  std::string_view words;
};
// All but 0, ascending, each once.
std::vector<ExitStatus> exit_statuses();

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
