#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "strata/base/ids.h"

namespace strata::os {

// Where /proc and /sys are looked for: "" for this machine, a folder with copies for tests.
struct SystemRoot {
  std::string prefix;
};

// A small text file of /proc or /sys below the root; nothing if it cannot be read.
std::optional<std::string> read_text(const SystemRoot& root, const std::string& path);

// Value of "Name:   123 kB" in text like /proc/meminfo, in bytes. Nothing if absent or absurd.
std::optional<Bytes> kilobyte_field(std::string_view text, std::string_view field);

// A number and nothing else but blanks around it; nothing if it does not fit.
std::optional<uint64_t> parse_number(std::string_view text);

}  // namespace strata::os
