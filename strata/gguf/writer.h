#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "strata/gguf/value.h"
#include "strata/io/output.h"
#include "strata/quant/types.h"

namespace strata::gguf {

// Writes a GGUF file (version 3) from start to end, without seeking back: add the keys, declare all
// tensors, begin(), then the bytes of every tensor in the order of declaration, finish().
//   Writer writer;
//   writer.add("general.architecture", "qwen4exp");
//   writer.declare("token_embd.weight", quant::Type::kF32, {512, 64});
//   io::write_atomically(path, [&](io::Output& out) {
//     writer.begin(out);
//     writer.append(bytes);
//     writer.finish();
//   });
// Errors: kInvalidArgument for names, shapes and sizes that a reader would refuse; kIo from out.
class Writer {
 public:
  static constexpr uint32_t kDefaultAlignment = 32;

  // alignment: of tensor data in bytes, a power of two. If it is not the default, the key
  // general.alignment is added.
  explicit Writer(uint32_t alignment = kDefaultAlignment);

  // Keys must be new and not empty. The type in the file is the C++ type's.
  template <class T>
  requires std::is_arithmetic_v<T>
  void add(std::string_view key, T value) { add(key, Value(value)); }
  void add(std::string_view key, const char* text) { add(key, Value(std::string_view(text))); }
  void add(std::string_view key, std::string_view text) { add(key, Value(text)); }
  void add(std::string_view key, const std::string& text) { add(key, std::string_view(text)); }
  void add(std::string_view key, const Value& value);
  void add_array(std::string_view key, std::span<const std::string_view> strings);
  void add_array(std::string_view key, std::span<const std::string> strings);
  template <class T>
  requires std::is_arithmetic_v<T>
  void add_array(std::string_view key, std::span<const T> values) {
    static_assert(!std::is_same_v<T, char>);
    Array array;
    array.element = type_of(Value(T{}));
    array.size = values.size();
    array.raw = std::as_bytes(values);
    add(key, Value(std::move(array)));
  }
  template <class T>
  void add_array(std::string_view key, const std::vector<T>& values) {
    add_array(key, std::span<const T>(values));
  }

  // The three split keys. no counts from 0, n_tensors over all shards.
  void add_split(uint16_t no, uint16_t count, int32_t n_tensors);

  // shape: outermost first.
  void declare(std::string_view name, quant::Type type, std::span<const int64_t> shape);
  void declare(std::string_view name, quant::Type type, std::initializer_list<int64_t> shape) {
    declare(name, type, std::span<const int64_t>(shape.begin(), shape.size()));
  }

  // Writes header and table; out must live until finish().
  void begin(io::Output& out);
  // The next bytes of tensor data, in pieces of any size; a piece may not cross into another
  // tensor.
  void append(std::span<const std::byte> bytes);
  // Checks that every tensor is complete.
  void finish();

  // Bytes of the tensor being written (or next to be) that are still to come.
  uint64_t pending_bytes() const;

 private:
  struct Declared {
    std::string name;
    uint64_t n_bytes;
  };
  void begin_key(std::string_view key, ValueType type);
  void pad(uint64_t n_bytes);

  uint32_t alignment_;
  uint64_t n_keys_ = 0;
  std::string keys_;   // serialised
  std::string table_;  // serialised
  uint64_t data_bytes_ = 0;
  std::unordered_set<std::string> key_names_;
  std::unordered_set<std::string> tensor_names_;
  std::vector<Declared> tensors_;
  io::Output* out_ = nullptr;
  size_t current_ = 0;
  uint64_t current_done_ = 0;
};

// "base-00002-of-00003.gguf" for no = 1, count = 3.
std::string shard_path(std::string_view base, int no, int count);

}  // namespace strata::gguf
