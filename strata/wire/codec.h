#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "strata/wire/messages.h"

// Messages as bytes. A frame is a header of kHeaderBytes and a payload; every number is
// little-endian, a list is its count (uint32) and its members, text is its bytes (uint32) and them.
namespace strata::wire {

inline constexpr uint16_t kVersion = 6;
inline constexpr size_t kHeaderBytes = 20;
// Above the largest prompt (a million ids is 4 MB) and its stop strings by far.
inline constexpr uint32_t kMaxPayloadBytes = 64u << 20;

struct Frame {
  uint32_t bytes = 0;    // of the payload
  uint16_t version = 0;  // kVersion
  uint16_t type = 0;     // which message
  uint32_t engine = 0;   // incarnation of the engine; frames of a dead one are dropped
  RequestId request = kNoRequest;
};

// Append one frame to `out`. Errors: kUnsupported for a payload above kMaxPayloadBytes, which what
// a request says can come to; `out` is then as it was.
void encode(uint32_t engine, RequestId request, const Command& command, std::string& out);
void encode(uint32_t engine, RequestId request, const Event& event, std::string& out);

// Both judge bytes of another process. Errors: kCorruptFile for anything that encode() cannot have
// made, trailing bytes included.
Command decode_command(const Frame& frame, std::string_view payload);
Event decode_event(const Frame& frame, std::string_view payload);

// Cuts a stream into frames, whatever pieces it comes in.
class FrameReader {
 public:
  void append(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole frame; `payload` is valid until the next call of either function.
  // Errors: kUnsupported for another version, kCorruptFile for a length above kMaxPayloadBytes.
  std::optional<Frame> next(std::string_view& payload);

 private:
  std::string buffer_;
  size_t taken_ = 0;  // bytes of buffer_ already returned
};

}  // namespace strata::wire
