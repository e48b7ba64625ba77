#include "strata/gguf/test_rewrite.h"

#include <memory>
#include <span>
#include <utility>

#include "strata/gguf/writer.h"
#include "strata/io/output.h"
#include "strata/io/source.h"

namespace strata::gguf::testing {

namespace {

uint64_t bytes_of(const Changes::Form& form) {
  uint64_t rows = 1;
  for (size_t i = 0; i + 1 < form.shape.size(); ++i) rows *= static_cast<uint64_t>(form.shape[i]);
  return rows * quant::row_bytes(form.type, static_cast<uint64_t>(form.shape.back()));
}

void add_keys(const Model& model, const Changes& changes, Writer& writer) {
  std::set<std::string> written;
  for (const KeyValue& entry : model.metadata().entries()) {
    const std::string key(entry.key);
    written.insert(key);
    if (changes.drop_keys.contains(key)) continue;
    const auto changed = changes.set_keys.find(key);
    writer.add(key, changed == changes.set_keys.end() ? entry.value : changed->second);
  }
  for (const auto& [key, value] : changes.set_keys) {
    if (!written.contains(key)) writer.add(key, value);
  }
}

// Declares every tensor and calls each(name, tensor of the model or null, bytes).
template <class Each>
void declare(const Model& model, const Changes& changes, Writer& writer, const Each& each) {
  const auto declare_form = [&](const std::string& name, const Changes::Form& form) {
    writer.declare(name, form.type, form.shape);
    each(name, nullptr, bytes_of(form));
  };
  for (const Tensor& tensor : model.tensors()) {
    const std::string name(tensor.name);
    if (changes.drop_tensors.contains(name)) continue;
    if (const auto form = changes.forms.find(name); form != changes.forms.end()) {
      declare_form(name, form->second);
      continue;
    }
    writer.declare(name, tensor.type->type, tensor.shape());
    each(name, &tensor, tensor.n_bytes);
  }
  for (const auto& [name, form] : changes.add_tensors) declare_form(name, form);
}

Model open(std::unique_ptr<io::ByteSource> source) {
  std::vector<std::unique_ptr<io::ByteSource>> sources;
  sources.push_back(std::move(source));
  return Model::from_sources(std::move(sources));
}

// Some bytes, and zeros behind them.
class ZeroPadded final : public io::ByteSource {
 public:
  ZeroPadded(std::string name, std::vector<std::byte> bytes, uint64_t size)
      : ByteSource(std::move(name), size), bytes_(std::move(bytes)) {}

 private:
  size_t read_some(uint64_t offset, std::span<std::byte> out) const override {
    for (std::byte& b : out) {
      b = offset < bytes_.size() ? bytes_[static_cast<size_t>(offset)] : std::byte{0};
      ++offset;
    }
    return out.size();
  }

  std::vector<std::byte> bytes_;
};

}  // namespace

Model rewritten(const Model& model, const Changes& changes) {
  Writer writer;
  add_keys(model, changes, writer);
  std::vector<std::vector<std::byte>> data;
  declare(model, changes, writer,
          [&](const std::string& name, const Tensor* tensor, uint64_t n_bytes) {
            data.push_back(tensor ? model.read(*tensor)
                                  : std::vector<std::byte>(static_cast<size_t>(n_bytes)));
            if (changes.edit) changes.edit(name, data.back());
          });
  io::MemoryOutput out;
  writer.begin(out);
  for (const std::vector<std::byte>& bytes : data) writer.append(bytes);
  writer.finish();
  return open(std::make_unique<io::MemorySource>("changed.gguf", out.take()));
}

Model rewritten_headers(const Model& model, const Changes& changes) {
  Writer writer;
  add_keys(model, changes, writer);
  constexpr uint64_t kAlignment = Writer::kDefaultAlignment;
  uint64_t size = 0;
  declare(model, changes, writer, [&](const std::string&, const Tensor*, uint64_t n_bytes) {
    size += (n_bytes + kAlignment - 1) / kAlignment * kAlignment;
  });
  io::MemoryOutput out;
  writer.begin(out);
  std::vector<std::byte> header = out.take();
  size += header.size();
  return open(std::make_unique<ZeroPadded>("changed.gguf", std::move(header), size));
}

}  // namespace strata::gguf::testing
