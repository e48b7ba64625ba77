#include "strata/gguf/describe.h"

#include <algorithm>
#include <map>
#include <type_traits>
#include <utility>
#include <variant>

#include "strata/base/format.h"
#include "strata/gguf/escape.h"

namespace strata::gguf {
namespace {

struct Shown {
  std::string text;
  bool shortened = false;
};

Shown show_string(std::string_view text, const DescribeOptions& options) {
  const auto max = static_cast<size_t>(options.max_string_bytes);
  return {escaped(text, max), text.size() > max};
}

Shown show_array(const Array& array, const DescribeOptions& options) {
  const auto n = std::min(array.size, static_cast<uint64_t>(options.max_items));
  Shown shown{"[", n < array.size};
  for (uint64_t i = 0; i < n; ++i) {
    if (i > 0) shown.text += ", ";
    if (array.element == ValueType::kString) {
      const Shown item = show_string(array.strings[i], options);
      shown.text += '"' + item.text + '"';
      shown.shortened |= item.shortened;
    } else if (array.element == ValueType::kArray) {
      const Shown item = show_array(array.arrays[i], options);
      shown.text += item.text;
      shown.shortened |= item.shortened;
    } else if (array.element == ValueType::kBool) {
      shown.text += array.raw[i] == std::byte{0} ? "false" : "true";
    } else if (array.element == ValueType::kF32) {
      // The shortest text of the float, not of the double it widens to.
      const double value = std::get<double>(scalar_at(array, i));
      shown.text += format("{}", static_cast<float>(value));
    } else {
      shown.text += std::visit([](auto value) { return format("{}", value); }, scalar_at(array, i));
    }
  }
  if (n < array.size) shown.text += format("{}... {} more", n > 0 ? ", " : "", array.size - n);
  shown.text += "]";
  return shown;
}

Shown show(const Value& value, const DescribeOptions& options) {
  return std::visit(
      [&](const auto& v) -> Shown {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string_view>) {
          return show_string(v, options);
        } else if constexpr (std::is_same_v<T, Array>) {
          return show_array(v, options);
        } else {
          return {format("{}", v)};
        }
      },
      value);
}

std::string bytes_text(uint64_t n_bytes) {
  constexpr std::pair<uint64_t, std::string_view> kUnits[] = {
      {1u << 30, "GiB"}, {1u << 20, "MiB"}, {1u << 10, "KiB"}};
  for (const auto& [unit, name] : kUnits) {
    if (n_bytes >= unit) {
      return format("{:.2f} {}", static_cast<double>(n_bytes) / static_cast<double>(unit), name);
    }
  }
  return format("{} B", n_bytes);
}

// Left-aligned columns of text, the right ones aligned right.
class Table {
 public:
  explicit Table(std::vector<bool> right) : right_(std::move(right)), widths_(right_.size()) {}

  void add(std::vector<std::string> cells) {
    for (size_t i = 0; i < cells.size(); ++i) widths_[i] = std::max(widths_[i], cells[i].size());
    rows_.push_back(std::move(cells));
  }

  std::string text() const {
    std::string out;
    for (const auto& row : rows_) {
      std::string line = " ";
      for (size_t i = 0; i < row.size(); ++i) {
        line += right_[i] ? format(" {:>{}}", row[i], widths_[i])
                          : format(" {:<{}}", row[i], widths_[i]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + '\n';
    }
    return out;
  }

 private:
  std::vector<bool> right_;
  std::vector<size_t> widths_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace

Description describe(const Model& model, const DescribeOptions& options) {
  Description d;
  for (const Shard& shard : model.shards()) {
    d.files.push_back({.path = shard.path,
                       .n_bytes = shard.n_bytes,
                       .header_bytes = shard.header_bytes,
                       .version = shard.version,
                       .alignment = shard.alignment,
                       .n_tensors = shard.n_tensors});
  }
  constexpr size_t kKeyBytes = 1000;
  for (const KeyValue& entry : model.metadata().entries()) {
    Shown shown = show(entry.value, options);
    d.keys.push_back({escaped(entry.key, kKeyBytes), type_text(entry.value), std::move(shown.text),
                      shown.shortened});
  }
  std::map<uint32_t, Description::TypeTotal> totals;
  for (const Tensor& tensor : model.tensors()) {
    d.tensors.push_back({.name = escaped(tensor.name, kKeyBytes),
                         .type = std::string(tensor.type->name),
                         .shape = {tensor.shape().begin(), tensor.shape().end()},
                         .n_bytes = tensor.n_bytes,
                         .offset = tensor.offset,
                         .file = tensor.shard});
    auto& total = totals[tensor.type_id];
    total.type = tensor.type->name;
    ++total.n_tensors;
    total.n_values += tensor.n_values;
    total.n_bytes += tensor.n_bytes;
    d.n_values += tensor.n_values;
    d.n_bytes += tensor.n_bytes;
  }
  for (auto& [id, total] : totals) d.types.push_back(std::move(total));
  std::stable_sort(d.types.begin(), d.types.end(),
                   [](const auto& a, const auto& b) { return a.n_bytes > b.n_bytes; });
  return d;
}

std::string to_text(const Description& d) {
  std::string out = d.files.size() == 1 ? "file\n" : format("{} files\n", d.files.size());
  for (const auto& file : d.files) {
    out += format("  {}: {}, GGUF version {}, {} tensors, alignment {}\n", file.path,
                  bytes_text(file.n_bytes), file.version, file.n_tensors, file.alignment);
  }

  out += format("\n{} keys\n", d.keys.size());
  Table keys({false, false, false});
  for (const auto& key : d.keys) keys.add({key.key, key.type, key.text});
  out += keys.text();

  out += format("\n{} tensors\n", d.tensors.size());
  Table tensors({false, false, false, true, false});
  for (const auto& tensor : d.tensors) {
    tensors.add({tensor.name, tensor.type, shape_text(tensor.shape), format("{}", tensor.n_bytes),
                 d.files.size() == 1 ? "" : format("file {}", tensor.file + 1)});
  }
  out += tensors.text();

  out += "\ntypes\n";
  Table types({false, true, true, true, true});
  const auto add = [&](const std::string& type, uint64_t n, uint64_t values, uint64_t bytes) {
    const double bits =
        values == 0 ? 0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(values);
    types.add({type, format("{} tensors", n), format("{} values", values), bytes_text(bytes),
               format("{:.3f} bits a value", bits)});
  };
  for (const auto& type : d.types) add(type.type, type.n_tensors, type.n_values, type.n_bytes);
  add("all", d.tensors.size(), d.n_values, d.n_bytes);
  out += types.text();
  return out;
}

}  // namespace strata::gguf
