#include "strata/gguf/header.h"

#include <bit>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/gguf/cursor.h"
#include "strata/gguf/escape.h"
#include "strata/gguf/signature.h"

namespace strata::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "fields are copied as they lie");

constexpr uint32_t kDefaultAlignment = 32;
// Least bytes of a key with its value (length, one letter, type, u8) and of a row of the tensor
// table (length, one letter, rank, one extent, type, offset): bounds of the counts.
constexpr uint64_t kMinKeyBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

class HeaderReader {
 public:
  explicit HeaderReader(const io::ByteSource& source)
      : source_(source), cursor_(source, header_.strings) {}

  Header read();

 private:
  void check_signature();
  ValueType value_type(std::string_view what);
  Value value(ValueType type);
  Array array(int depth);
  bool boolean();
  std::vector<KeyValue> keys(uint64_t n);
  Tensor tensor(uint64_t index);
  void extents(Tensor& tensor);
  void sizes(Tensor& tensor);
  void check_alignment();
  void read_split();

  const io::ByteSource& source_;
  Header header_;
  Cursor cursor_;
  uint64_t n_nested_ = 0;
};

void HeaderReader::check_signature() {
  std::vector<std::byte> first(std::min<uint64_t>(kSignatureBytes, source_.size()));
  source_.read_at(0, first);
  if (const auto refusal = signature(first, source_.size())) {
    throw Error(refusal->code, format("{} {}", source_.name(), refusal->text));
  }
}

ValueType HeaderReader::value_type(std::string_view what) {
  const auto id = cursor_.scalar<uint32_t>(what);
  if (id > static_cast<uint32_t>(ValueType::kF64)) {
    cursor_.fail(format("{} {} at byte {} is not one of 0..12", what, id, cursor_.position() - 4));
  }
  return static_cast<ValueType>(id);
}

bool HeaderReader::boolean() {
  const auto byte = cursor_.scalar<uint8_t>("bool");
  if (byte > 1) {
    cursor_.fail(format("bool at byte {} is {}, not 0 or 1", cursor_.position() - 1, byte));
  }
  return byte == 1;
}

Value HeaderReader::value(ValueType type) {
  switch (type) {
    case ValueType::kU8:
      return cursor_.scalar<uint8_t>("value");
    case ValueType::kI8:
      return cursor_.scalar<int8_t>("value");
    case ValueType::kU16:
      return cursor_.scalar<uint16_t>("value");
    case ValueType::kI16:
      return cursor_.scalar<int16_t>("value");
    case ValueType::kU32:
      return cursor_.scalar<uint32_t>("value");
    case ValueType::kI32:
      return cursor_.scalar<int32_t>("value");
    case ValueType::kF32:
      return cursor_.scalar<float>("value");
    case ValueType::kBool:
      return boolean();
    case ValueType::kString:
      return cursor_.string("string", kMaxHeaderBytes);
    case ValueType::kArray:
      return array(1);
    case ValueType::kU64:
      return cursor_.scalar<uint64_t>("value");
    case ValueType::kI64:
      return cursor_.scalar<int64_t>("value");
    case ValueType::kF64:
      return cursor_.scalar<double>("value");
  }
  cursor_.fail("a value of unknown type");
}

Array HeaderReader::array(int depth) {
  if (depth > kMaxArrayDepth) {
    cursor_.fail(format("arrays are nested more than {} deep", kMaxArrayDepth));
  }
  Array array;
  array.element = value_type("element type");
  array.size = cursor_.scalar<uint64_t>("array length");
  switch (array.element) {
    case ValueType::kString:
      cursor_.expect(array.size, 8, "strings");
      array.strings.reserve(std::min<uint64_t>(array.size, 1u << 20));
      for (uint64_t i = 0; i < array.size; ++i) {
        array.strings.push_back(cursor_.string("string of the array", kMaxHeaderBytes));
      }
      break;
    case ValueType::kArray:
      cursor_.expect(array.size, 12, "arrays");
      n_nested_ += array.size;
      if (n_nested_ > kMaxNestedArrays) {
        cursor_.fail(format("more than {} arrays inside arrays", kMaxNestedArrays));
      }
      array.arrays.reserve(array.size);
      for (uint64_t i = 0; i < array.size; ++i) array.arrays.push_back(this->array(depth + 1));
      break;
    default: {
      const auto width = static_cast<uint64_t>(scalar_bytes(array.element));
      cursor_.expect(array.size, width, "array elements");
      array.raw = cursor_.bytes(array.size * width, "array");
      if (array.element != ValueType::kBool) break;
      for (const std::byte byte : array.raw) {
        if (byte > std::byte{1}) cursor_.fail("an array of bools has a byte that is not 0 or 1");
      }
    }
  }
  return array;
}

std::vector<KeyValue> HeaderReader::keys(uint64_t n) {
  std::vector<KeyValue> entries;
  entries.reserve(n);
  std::unordered_set<std::string_view> seen;
  for (uint64_t i = 0; i < n; ++i) {
    cursor_.set_place("key", i);
    const std::string_view key = cursor_.string("key name", kMaxKeyBytes);
    if (key.empty()) cursor_.fail("the name has no letters");
    cursor_.set_place("key", i, key);
    if (!seen.insert(key).second) cursor_.fail("the same key is there twice");
    entries.push_back({key, value(value_type("value type"))});
  }
  return entries;
}

void HeaderReader::extents(Tensor& tensor) {
  const auto rank = cursor_.scalar<uint32_t>("number of dimensions");
  if (rank == 0 || rank > Tensor::kMaxRank) {
    cursor_.fail(format("{} dimensions; 1 to {} are possible", rank, Tensor::kMaxRank));
  }
  tensor.rank = static_cast<int>(rank);
  std::array<uint64_t, Tensor::kMaxRank> file_order{};
  for (uint32_t i = 0; i < rank; ++i) file_order[i] = cursor_.scalar<uint64_t>("dimension");
  uint64_t n_values = 1;
  for (uint32_t i = 0; i < rank; ++i) {
    const uint64_t extent = file_order[i];
    // Turned here, once: the file starts with the innermost.
    tensor.extents[rank - 1 - i] = static_cast<int64_t>(extent);
    if (extent == 0) cursor_.fail(format("dimension {} of {} is 0", i, rank));
    constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (extent > kMax || n_values > kMax / extent) {
      std::string text;
      for (uint32_t d = rank; d-- > 0;) text += format("{}{}", file_order[d], d > 0 ? ", " : "");
      cursor_.fail(format("shape [{}] has more values than 2^63 - 1", text));
    }
    n_values *= extent;
  }
  tensor.n_values = n_values;
}

void HeaderReader::sizes(Tensor& tensor) {
  tensor.type = quant::find_type(tensor.type_id);
  if (tensor.type == nullptr) {
    const auto reserved = quant::reserved_type_name(tensor.type_id);
    cursor_.fail_unsupported(
        format("tensor type {}{} is not handled", tensor.type_id,
               reserved.empty() ? std::string(" is not known and") : format(" ({})", reserved)));
  }
  const auto columns = static_cast<uint64_t>(tensor.n_columns());
  const auto row = quant::find_row_bytes(tensor.type->type, columns);
  if (!row) {
    cursor_.fail(
        format("rows of {} values (shape {}) are no whole blocks of {} values, which {} "
               "needs",
               columns, shape_text(tensor.shape()), tensor.type->block_values, tensor.type->name));
  }
  const uint64_t rows = tensor.n_values / columns;
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (rows > kMax / *row) {
    cursor_.fail(format("shape {} of {} has more bytes than 2^63 - 1", shape_text(tensor.shape()),
                        tensor.type->name));
  }
  tensor.n_bytes = rows * *row;
}

Tensor HeaderReader::tensor(uint64_t index) {
  Tensor tensor;
  cursor_.set_place("tensor", index);
  tensor.name = cursor_.string("tensor name", kMaxTensorNameBytes);
  if (tensor.name.empty()) cursor_.fail("the name has no letters");
  cursor_.set_place("tensor", index, tensor.name);
  extents(tensor);
  tensor.type_id = cursor_.scalar<uint32_t>("tensor type");
  sizes(tensor);
  tensor.offset = cursor_.scalar<uint64_t>("offset");
  if (tensor.offset % header_.alignment != 0) {
    cursor_.fail(format("offset {} is not a multiple of the alignment {}", tensor.offset,
                        header_.alignment));
  }
  return tensor;
}

void HeaderReader::check_alignment() {
  const uint64_t alignment =
      header_.metadata.find_u64("general.alignment").value_or(kDefaultAlignment);
  if (!std::has_single_bit(alignment) || alignment > kMaxAlignment) {
    cursor_.fail(format("general.alignment is {}; a power of two up to {} is possible", alignment,
                        kMaxAlignment));
  }
  header_.alignment = static_cast<uint32_t>(alignment);
}

void HeaderReader::read_split() {
  const Metadata& metadata = header_.metadata;
  // 0 and 1 mean one file: tools that join shards leave the keys behind.
  Split split;
  split.count = metadata.find_u64("split.count").value_or(0);
  if (split.count <= 1) return;
  split.no = metadata.get_u64("split.no");
  split.n_tensors = metadata.find_u64("split.tensors.count");
  if (split.count > 65535 || split.no >= split.count) {
    cursor_.fail(format("split.no is {} (from 0) and split.count {}, which cannot be", split.no,
                        split.count));
  }
  header_.split = split;
}

Header HeaderReader::read() {
  check_signature();
  cursor_.scalar<uint32_t>("magic");
  header_.version = cursor_.scalar<uint32_t>("version");
  const auto n_tensors = cursor_.scalar<uint64_t>("number of tensors");
  const auto n_keys = cursor_.scalar<uint64_t>("number of keys");
  cursor_.expect(n_keys, kMinKeyBytes, "keys");
  cursor_.expect(n_tensors, kMinTensorBytes, "tensors");
  if (n_keys > kMaxKeys || n_tensors > kMaxTensors) {
    cursor_.fail(format("{} keys and {} tensors; at most {} and {} are read", n_keys, n_tensors,
                        kMaxKeys, kMaxTensors));
  }
  header_.metadata = Metadata(source_.name(), keys(n_keys));
  cursor_.set_place("header", 0);
  check_alignment();
  read_split();

  std::unordered_set<std::string_view> seen;
  header_.tensors.reserve(n_tensors);
  for (uint64_t i = 0; i < n_tensors; ++i) {
    header_.tensors.push_back(tensor(i));
    if (!seen.insert(header_.tensors.back().name).second) {
      cursor_.fail("a tensor of this name is there twice");
    }
  }
  header_.n_bytes = cursor_.position();
  return std::move(header_);
}

}  // namespace

Header read_header(const io::ByteSource& source) { return HeaderReader(source).read(); }

}  // namespace strata::gguf
