#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "strata/base/error.h"

namespace strata::gguf {

// How many first bytes signature() likes to see.
inline constexpr size_t kSignatureBytes = 512;

struct Refusal {
  ErrorCode code;
  std::string text;  // "looks like ...; what to do"
};

// Why a file that starts with these bytes is not read: it is no GGUF, or one of a version or byte
// order that is not handled. Nothing if magic and version are right.
std::optional<Refusal> signature(std::span<const std::byte> first, uint64_t file_bytes);

}  // namespace strata::gguf
