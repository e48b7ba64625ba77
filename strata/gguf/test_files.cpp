#include "strata/gguf/test_files.h"

#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "tests/support/temp_folder.h"

namespace strata::gguf::testing {
namespace {

constexpr std::array<int, 13> kWidth = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
constexpr uint32_t kStringId = 8;
constexpr uint32_t kArrayId = 9;

class Walk {
 public:
  explicit Walk(const Bytes& file) : file_(file) {}

  std::vector<Field> run() {
    at_ = 8;
    const uint64_t n_tensors = number(Field::Kind::kCount, "n_tensors", 8);
    const uint64_t n_keys = number(Field::Kind::kCount, "n_keys", 8);
    for (uint64_t i = 0; i < n_keys; ++i) {
      const std::string key = string("key " + std::to_string(i) + " length");
      const auto type = number(Field::Kind::kType, key + " type", 4);
      value(key, type);
    }
    for (uint64_t i = 0; i < n_tensors; ++i) {
      const std::string name = string("tensor " + std::to_string(i) + " length");
      const auto rank = number(Field::Kind::kCount, name + " rank", 4);
      for (uint64_t d = 0; d < rank; ++d) {
        number(Field::Kind::kExtent, name + " extent " + std::to_string(d), 8);
      }
      number(Field::Kind::kType, name + " type", 4);
      number(Field::Kind::kOffset, name + " offset", 8);
    }
    return std::move(fields_);
  }

 private:
  uint64_t number(Field::Kind kind, std::string what, int n_bytes) {
    fields_.push_back({kind, std::move(what), at_, n_bytes});
    const uint64_t result = peek(file_, at_, n_bytes);
    at_ += static_cast<size_t>(n_bytes);
    return result;
  }
  std::string string(std::string what) {
    const uint64_t n = number(Field::Kind::kLength, std::move(what), 8);
    std::string text(reinterpret_cast<const char*>(file_.data()) + at_, n);
    at_ += n;
    return text;
  }
  void value(const std::string& key, uint64_t type) {
    if (type == kStringId) {
      string(key + " length");
    } else if (type == kArrayId) {
      const auto element = number(Field::Kind::kType, key + " element type", 4);
      const auto n = number(Field::Kind::kCount, key + " count", 8);
      for (uint64_t i = 0; i < n; ++i) value(key + " " + std::to_string(i), element);
    } else {
      at_ += static_cast<size_t>(kWidth.at(type));
    }
  }

  const Bytes& file_;
  size_t at_ = 0;
  std::vector<Field> fields_;
};

class BorrowedSource final : public io::ByteSource {
 public:
  BorrowedSource(std::string name, std::span<const std::byte> bytes)
      : ByteSource(std::move(name), bytes.size()), bytes_(bytes) {}

  std::span<const std::byte> mapped() const override { return bytes_; }

 private:
  size_t read_some(uint64_t offset, std::span<std::byte> out) const override {
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return out.size();
  }

  std::span<const std::byte> bytes_;
};

}  // namespace

const Bytes& tiny_file() {
  static const Bytes bytes =
      strata::testing::read_file(STRATA_SOURCE_DIR "/tests/golden/qwen4exp/tiny.gguf");
  return bytes;
}

Bytes write_bytes(Writer& writer) {
  io::MemoryOutput out;
  writer.begin(out);
  uint8_t next = 1;
  while (writer.pending_bytes() > 0) {
    Bytes bytes(writer.pending_bytes());
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(next++);
    writer.append(bytes);
  }
  writer.finish();
  return out.take();
}

Bytes small_file() {
  Writer writer;
  writer.add("general.architecture", "small");
  writer.add("a.u8", uint8_t{200});
  writer.add("a.i8", int8_t{-100});
  writer.add("a.u16", uint16_t{60'000});
  writer.add("a.i16", int16_t{-30'000});
  writer.add("a.u32", uint32_t{4'000'000'000});
  writer.add("a.i32", int32_t{-2'000'000'000});
  writer.add("a.f32", 0.1f);
  writer.add("a.bool", true);
  writer.add("a.u64", uint64_t{18'000'000'000'000'000'000u});
  writer.add("a.i64", int64_t{-9'000'000'000'000'000'000});
  writer.add("a.f64", 0.1);
  writer.add("a.empty", "");
  writer.add_array("l.u64", std::vector<uint64_t>{1, 2, 1ull << 60});
  writer.add_array("l.i32", std::vector<int32_t>{-1, 0, 7});
  writer.add_array("l.f32", std::vector<float>{0.5f, 1.5f});
  writer.add_array("l.strings", std::vector<std::string>{"", "one", "zwei"});
  writer.add_array("l.empty", std::vector<int32_t>{});
  writer.declare("plain.weight", quant::Type::kF32, {3, 5});
  writer.declare("blocks.weight", quant::Type::kQ4_0, {2, 3, 64});
  writer.declare("vector", quant::Type::kF16, {7});
  writer.declare("four", quant::Type::kI8, {1, 2, 3, 4});
  writer.declare("last", quant::Type::kQ8_0, {1, 32});
  return write_bytes(writer);
}

std::vector<Bytes> split_model(const Model& model, const std::vector<size_t>& sizes) {
  std::vector<Bytes> files;
  size_t next = 0;
  for (size_t no = 0; no < sizes.size(); ++no) {
    Writer writer;
    if (no == 0) {
      for (const KeyValue& entry : model.metadata().entries()) writer.add(entry.key, entry.value);
    }
    writer.add_split(static_cast<uint16_t>(no), static_cast<uint16_t>(sizes.size()),
                     static_cast<int32_t>(model.tensors().size()));
    const auto tensors = model.tensors().subspan(next, sizes[no]);
    next += sizes[no];
    for (const Tensor& tensor : tensors) {
      writer.declare(tensor.name, tensor.type->type, tensor.shape());
    }
    io::MemoryOutput out;
    writer.begin(out);
    for (const Tensor& tensor : tensors) writer.append(model.read(tensor));
    writer.finish();
    files.push_back(out.take());
  }
  if (next != model.tensors().size()) throw std::runtime_error("sizes do not add up");
  return files;
}

std::unique_ptr<io::ByteSource> source_of(Bytes bytes, std::string name) {
  return std::make_unique<io::MemorySource>(std::move(name), std::move(bytes));
}

Model open_bytes(Bytes bytes, std::string name) {
  std::vector<std::unique_ptr<io::ByteSource>> sources;
  sources.push_back(source_of(std::move(bytes), std::move(name)));
  return Model::from_sources(std::move(sources));
}

Model open_borrowed(const Bytes& bytes, std::string name) {
  std::vector<std::unique_ptr<io::ByteSource>> sources;
  sources.push_back(std::make_unique<BorrowedSource>(std::move(name), bytes));
  return Model::from_sources(std::move(sources));
}

std::vector<Field> fields_of(const Bytes& file) { return Walk(file).run(); }

const Field& find_field(const std::vector<Field>& fields, std::string_view what) {
  for (const Field& field : fields) {
    if (field.what == what) return field;
  }
  throw std::runtime_error("no field " + std::string(what));
}

void patch(Bytes& file, size_t at, uint64_t value, int n_bytes) {
  std::memcpy(file.data() + at, &value, static_cast<size_t>(n_bytes));
}

uint64_t peek(const Bytes& file, size_t at, int n_bytes) {
  uint64_t value = 0;
  std::memcpy(&value, file.data() + at, static_cast<size_t>(n_bytes));
  return value;
}

}  // namespace strata::gguf::testing
