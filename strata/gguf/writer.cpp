#include "strata/gguf/writer.h"

#include <bit>
#include <limits>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/gguf/escape.h"
#include "strata/gguf/header.h"

namespace strata::gguf {
namespace {

constexpr uint32_t kVersion = 3;

[[noreturn]] void fail(const std::string& text) {
  throw Error(ErrorCode::kInvalidArgument, "writing a GGUF file: " + text);
}

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

void put_string(std::string& out, std::string_view text) {
  put(out, uint64_t{text.size()});
  out += text;
}

void put_array(std::string& out, const Array& array) {
  put(out, static_cast<uint32_t>(array.element));
  put(out, array.size);
  if (array.element == ValueType::kString) {
    STRATA_CHECK(array.strings.size() == array.size);
    for (const std::string_view text : array.strings) put_string(out, text);
  } else if (array.element == ValueType::kArray) {
    STRATA_CHECK(array.arrays.size() == array.size);
    for (const Array& inner : array.arrays) put_array(out, inner);
  } else {
    const auto width = static_cast<uint64_t>(scalar_bytes(array.element));
    STRATA_CHECK(array.raw.size() == array.size * width);
    out.append(reinterpret_cast<const char*>(array.raw.data()), array.raw.size());
  }
}

uint64_t align_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace

Writer::Writer(uint32_t alignment) : alignment_(alignment) {
  if (!std::has_single_bit(alignment) || alignment > kMaxAlignment) {
    fail(format("alignment {} is no power of two up to {}", alignment, kMaxAlignment));
  }
  if (alignment != kDefaultAlignment) add("general.alignment", alignment);
}

void Writer::begin_key(std::string_view key, ValueType type) {
  STRATA_CHECK(out_ == nullptr);
  if (key.empty() || key.size() > kMaxKeyBytes) {
    fail(format("a key of {} bytes; 1 to {} are possible", key.size(), kMaxKeyBytes));
  }
  if (!key_names_.emplace(key).second) fail(format("the key {} is there twice", escaped(key)));
  put_string(keys_, key);
  put(keys_, static_cast<uint32_t>(type));
  ++n_keys_;
}

void Writer::add(std::string_view key, const Value& value) {
  begin_key(key, type_of(value));
  std::visit(
      [&](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string_view>) {
          put_string(keys_, v);
        } else if constexpr (std::is_same_v<T, Array>) {
          put_array(keys_, v);
        } else if constexpr (std::is_same_v<T, bool>) {
          put(keys_, static_cast<uint8_t>(v));
        } else {
          put(keys_, v);
        }
      },
      value);
}

void Writer::add_array(std::string_view key, std::span<const std::string_view> strings) {
  Array array;
  array.element = ValueType::kString;
  array.size = strings.size();
  array.strings.assign(strings.begin(), strings.end());
  add(key, Value(std::move(array)));
}

void Writer::add_array(std::string_view key, std::span<const std::string> strings) {
  const std::vector<std::string_view> views(strings.begin(), strings.end());
  add_array(key, std::span<const std::string_view>(views));
}

void Writer::add_split(uint16_t no, uint16_t count, int32_t n_tensors) {
  add("split.no", no);
  add("split.count", count);
  add("split.tensors.count", n_tensors);
}

void Writer::declare(std::string_view name, quant::Type type, std::span<const int64_t> shape) {
  STRATA_CHECK(out_ == nullptr);
  const std::string what = format("tensor {} {}", escaped(name), shape_text(shape));
  if (name.empty() || name.size() > kMaxTensorNameBytes) fail(what + ": the name's length");
  if (!tensor_names_.emplace(name).second) fail(what + ": the name is there twice");
  if (shape.empty() || shape.size() > Tensor::kMaxRank) fail(what + ": 1 to 4 dimensions");
  uint64_t n_rows = 1;
  for (const int64_t extent : shape) {
    if (extent < 1) fail(what + ": every extent is 1 or more");
  }
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  const auto row = quant::find_row_bytes(type, static_cast<uint64_t>(shape.back()));
  if (!row) fail(format("{}: no whole blocks of {}", what, quant::name(type)));
  for (const int64_t extent : shape.first(shape.size() - 1)) {
    if (n_rows > kMax / static_cast<uint64_t>(extent)) fail(what + ": too large");
    n_rows *= static_cast<uint64_t>(extent);
  }
  if (n_rows > kMax / *row || n_rows * *row > kMax - data_bytes_ - alignment_) {
    fail(what + ": too large");
  }
  put_string(table_, name);
  put(table_, static_cast<uint32_t>(shape.size()));
  for (size_t i = shape.size(); i-- > 0;) put(table_, static_cast<uint64_t>(shape[i]));
  put(table_, static_cast<uint32_t>(type));
  put(table_, data_bytes_);
  tensors_.push_back({std::string(name), n_rows * *row});
  data_bytes_ = align_up(data_bytes_ + n_rows * *row, alignment_);
}

void Writer::begin(io::Output& out) {
  STRATA_CHECK(out_ == nullptr);
  out_ = &out;
  std::string fixed = "GGUF";
  put(fixed, kVersion);
  put(fixed, uint64_t{tensors_.size()});
  put(fixed, n_keys_);
  out.write(fixed);
  out.write(keys_);
  out.write(table_);
  const uint64_t header = fixed.size() + keys_.size() + table_.size();
  pad(align_up(header, alignment_) - header);
}

void Writer::pad(uint64_t n_bytes) { out_->write(std::string(n_bytes, '\0')); }

uint64_t Writer::pending_bytes() const {
  return current_ < tensors_.size() ? tensors_[current_].n_bytes - current_done_ : 0;
}

void Writer::append(std::span<const std::byte> bytes) {
  STRATA_CHECK(out_ != nullptr);
  if (bytes.empty()) return;
  if (current_ >= tensors_.size()) fail("more data than tensors");
  const Declared& tensor = tensors_[current_];
  if (bytes.size() > pending_bytes()) {
    fail(format("tensor {} takes {} bytes more, got {}", escaped(tensor.name), pending_bytes(),
                bytes.size()));
  }
  out_->write(bytes);
  current_done_ += bytes.size();
  if (current_done_ < tensor.n_bytes) return;
  pad(align_up(tensor.n_bytes, alignment_) - tensor.n_bytes);
  ++current_;
  current_done_ = 0;
}

void Writer::finish() {
  STRATA_CHECK(out_ != nullptr);
  if (current_ < tensors_.size()) {
    fail(format("tensor {} still lacks {} bytes", escaped(tensors_[current_].name),
                pending_bytes()));
  }
}

std::string shard_path(std::string_view base, int no, int count) {
  return format("{}-{:05}-of-{:05}.gguf", base, no + 1, count);
}

}  // namespace strata::gguf
