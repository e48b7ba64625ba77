#include "strata/base/os/proc.h"

#include <charconv>
#include <fstream>
#include <limits>
#include <sstream>

#include "strata/base/text.h"

namespace strata::os {

std::optional<std::string> read_text(const SystemRoot& root, const std::string& path) {
  std::ifstream file(root.prefix + path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  // A folder opens but does not read; a file of a group that is gone reads as an error.
  if (file.bad() || text.bad()) return std::nullopt;
  return std::move(text).str();
}

std::optional<Bytes> kilobyte_field(std::string_view text, std::string_view field) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(field) || line.size() <= field.size() || line[field.size()] != ':') {
      continue;
    }
    line = trimmed(line.substr(field.size() + 1));
    if (!line.ends_with("kB")) return std::nullopt;
    const auto kilobytes = parse_number(line.substr(0, line.size() - 2));
    if (!kilobytes || *kilobytes > std::numeric_limits<Bytes>::max() / 1024) return std::nullopt;
    return *kilobytes * 1024;
  }
  return std::nullopt;
}

std::optional<uint64_t> parse_number(std::string_view text) {
  text = trimmed(text);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

}  // namespace strata::os
