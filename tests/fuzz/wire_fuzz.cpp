// Bytes from the other process: any of them end in a message or in an Error, and a message that was
// accepted is written as the bytes it was read from.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "strata/base/error.h"
#include "strata/wire/codec.h"

namespace {

using namespace strata;

template <class Message>
void same_again(const wire::Frame& frame, std::string_view payload, const Message& message) {
  std::string again;
  wire::encode(frame.engine, frame.request, message, again);
  if (std::string_view(again).substr(wire::kHeaderBytes) != payload) std::abort();
}

void take(const wire::Frame& frame, std::string_view payload) {
  try {
    same_again(frame, payload, wire::decode_command(frame, payload));
  } catch (const Error&) {
  }
  try {
    same_again(frame, payload, wire::decode_event(frame, payload));
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.empty()) return 0;
  // The first byte chooses the size of the pieces in which the rest arrives.
  const size_t piece = 1 + static_cast<uint8_t>(bytes[0]);
  wire::FrameReader reader;
  try {
    for (size_t at = 1; at < bytes.size(); at += piece) {
      reader.append(bytes.substr(at, piece));
      std::string_view payload;
      while (const auto frame = reader.next(payload)) take(*frame, payload);
    }
  } catch (const Error&) {
  }
  return 0;
}
