#pragma once

#include <type_traits>
#include <utility>
#include <variant>

#include "strata/base/error.h"
#include "strata/base/ids.h"

namespace strata::device {

// Why one call to a device failed: this call, no other. Plain data, so that it costs nothing to
// hand around in a step.
struct Fault {
  ErrorCode code = ErrorCode::kDevice;
  const char* call = "";  // literal: "allocate", "copy", "end_capture", an API's own name
  int api_code = 0;       // what the API said; 0 if it was not asked
  DeviceId device{};
  Bytes asked = 0, free = 0;
};

// A failed allocation, capture or copy is a value: the caller trips a feature or throws.
template <class T>
using Try = std::variant<T, Fault>;
using Done = std::monostate;

// Null if it went well.
template <class T>
const Fault* fault(const Try<T>& result) {
  return std::get_if<Fault>(&result);
}

// "allocate failed on device 1 (resource_exhausted, code 2): 4096 bytes asked, 512 free".
Error to_error(const Fault& fault);

// The value, or the fault as an exception.
template <class T>
T value_or_throw(Try<T>&& result) {
  if (const Fault* f = fault(result)) throw to_error(*f);
  return std::get<T>(std::move(result));
}

}  // namespace strata::device
