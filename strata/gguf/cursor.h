#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "strata/gguf/arena.h"
#include "strata/io/source.h"

namespace strata::gguf {

// Reads the fields of a header one after the other through a window of the source, and says in each
// error where it stood.
class Cursor {
 public:
  Cursor(const io::ByteSource& source, Arena& strings);

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return source_.size() - position_; }

  // What is being read, for errors: "key", 12, "general.name". The name may be empty.
  void set_place(std::string_view kind, uint64_t index, std::string_view name = {});

  template <class T>
  requires std::is_arithmetic_v<T> T scalar(std::string_view what) {
    std::byte bytes[sizeof(T)];
    fetch(bytes, what);
    T value;
    std::memcpy(&value, bytes, sizeof(T));
    return value;
  }

  // A length and as many bytes, copied into the arena.
  std::string_view string(std::string_view what, uint64_t max_bytes);

  // n_bytes as they are, copied into the arena.
  std::span<const std::byte> bytes(uint64_t n_bytes, std::string_view what);

  // Throws unless n items of at least min_bytes each can follow in the file.
  void expect(uint64_t n, uint64_t min_bytes, std::string_view what) const;

  // kCorruptFile: "FILE: key 12 (general.name): text".
  [[noreturn]] void fail(std::string_view text) const;
  [[noreturn]] void fail_unsupported(std::string_view text) const;

 private:
  std::string place() const;
  void fetch(std::span<std::byte> out, std::string_view what);

  const io::ByteSource& source_;
  Arena& strings_;
  uint64_t position_ = 0;
  std::vector<std::byte> window_;
  uint64_t window_at_ = 0;
  std::string_view kind_ = "header";
  uint64_t index_ = 0;
  std::string_view name_;
};

}  // namespace strata::gguf
