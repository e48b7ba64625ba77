#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strata/gguf/model.h"
#include "strata/gguf/writer.h"
#include "strata/io/source.h"

// Files for the tests of this module.
namespace strata::gguf::testing {

using Bytes = std::vector<std::byte>;

// tests/golden/qwen4exp/tiny.gguf, read once.
const Bytes& tiny_file();

// A few keys of every kind and tensors of several types, about 2 KiB, without padding at the end.
Bytes small_file();

// What writer has been told, with data of numbered bytes.
Bytes write_bytes(Writer& writer);

// The tensors of a model in shards: sizes tells how many each gets. The first has all other keys.
std::vector<Bytes> split_model(const Model& model, const std::vector<size_t>& sizes);

std::unique_ptr<io::ByteSource> source_of(Bytes bytes, std::string name = "test.gguf");
Model open_bytes(Bytes bytes, std::string name = "test.gguf");
// Without a copy: bytes must outlive the model.
Model open_borrowed(const Bytes& bytes, std::string name = "test.gguf");

// A field of a header, found by a walk that shares no code with the reader.
struct Field {
  enum class Kind { kCount, kLength, kType, kExtent, kOffset };
  Kind kind;
  std::string what;  // "n_keys", "general.name length", ...
  size_t at;
  int n_bytes;
};
std::vector<Field> fields_of(const Bytes& file);
const Field& find_field(const std::vector<Field>& fields, std::string_view what);

void patch(Bytes& file, size_t at, uint64_t value, int n_bytes);
uint64_t peek(const Bytes& file, size_t at, int n_bytes);

}  // namespace strata::gguf::testing
