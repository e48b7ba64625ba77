// Any bytes as a GGUF file: the reader ends in a Model or in an Error, and what it accepts can be
// described, read in whole and written again. An input in which a second "GGUF" follows is also
// taken for the shards of one model.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/gguf/describe.h"
#include "strata/gguf/model.h"
#include "strata/gguf/writer.h"
#include "strata/io/output.h"
#include "strata/io/source.h"

namespace {

using strata::Error;
using strata::gguf::KeyValue;
using strata::gguf::Model;
using strata::gguf::Tensor;
using strata::gguf::Writer;
using Sources = std::vector<std::unique_ptr<strata::io::ByteSource>>;

void add_source(Sources& sources, std::span<const std::byte> bytes) {
  sources.push_back(std::make_unique<strata::io::MemorySource>(
      "fuzz.gguf", std::vector<std::byte>(bytes.begin(), bytes.end())));
}

template <class Action>
void ignore_errors(Action action) {
  try {
    action();
  } catch (const Error&) {
  }
}

void ask_for_every_type(const strata::gguf::Metadata& metadata) {
  for (const KeyValue& entry : metadata.entries()) {
    ignore_errors([&] { metadata.get_u64(entry.key); });
    ignore_errors([&] { metadata.get_i64(entry.key); });
    ignore_errors([&] { metadata.get_f64(entry.key); });
    ignore_errors([&] { metadata.find_bool(entry.key); });
    ignore_errors([&] { metadata.get_string(entry.key); });
    ignore_errors([&] { metadata.get_u64s(entry.key); });
    ignore_errors([&] { metadata.get_i64s(entry.key); });
    ignore_errors([&] { metadata.find_bools(entry.key); });
    ignore_errors([&] { metadata.get_strings(entry.key); });
  }
}

std::vector<std::byte> write_again(const Model& model) {
  const uint32_t alignment = model.shards()[0].alignment;
  Writer writer(alignment);
  for (const KeyValue& entry : model.metadata().entries()) {
    const bool is_alignment = entry.key == "general.alignment";
    // The writer has added it itself.
    if (is_alignment && alignment != Writer::kDefaultAlignment) continue;
    // All tensors go into one file.
    if (entry.key.starts_with("split.")) continue;
    writer.add(entry.key, entry.value);
  }
  for (const Tensor& tensor : model.tensors()) {
    writer.declare(tensor.name, tensor.type->type, tensor.shape());
  }
  strata::io::MemoryOutput out;
  writer.begin(out);
  for (const Tensor& tensor : model.tensors()) writer.append(model.bytes(tensor));
  writer.finish();
  return out.take();
}

void use(const Model& model) {
  ask_for_every_type(model.metadata());
  STRATA_CHECK(!strata::gguf::to_text(strata::gguf::describe(model)).empty());
  STRATA_CHECK(model.is_mapped());

  Sources sources;
  add_source(sources, write_again(model));
  const Model again = Model::from_sources(std::move(sources));
  STRATA_CHECK(again.tensors().size() == model.tensors().size());
  for (const Tensor& tensor : model.tensors()) {
    const Tensor& copy = again.get(tensor.name);
    STRATA_CHECK(std::ranges::equal(copy.shape(), tensor.shape()));
    STRATA_CHECK(std::ranges::equal(again.bytes(copy), model.read(tensor)));
  }
}

void open_and_use(Sources sources) {
  std::unique_ptr<Model> model;
  try {
    model = std::make_unique<Model>(Model::from_sources(std::move(sources)));
  } catch (const Error& e) {
    STRATA_CHECK(e.code() == strata::ErrorCode::kCorruptFile ||
                 e.code() == strata::ErrorCode::kUnsupported ||
                 e.code() == strata::ErrorCode::kNotFound);
    return;
  }
  use(*model);  // an error from here is a finding
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  Sources whole;
  add_source(whole, bytes);
  open_and_use(std::move(whole));

  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Sources shards;
  for (size_t at = 0; at < size && shards.size() < 8;) {
    const size_t next = std::min(text.find("GGUF", at + 1), size);
    add_source(shards, bytes.subspan(at, next - at));
    at = next;
  }
  if (shards.size() > 1) open_and_use(std::move(shards));
  return 0;
}
