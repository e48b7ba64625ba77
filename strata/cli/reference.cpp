#include "strata/cli/reference.h"

#include <cstring>
#include <limits>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/quant/decode.h"

namespace strata::cli {
namespace {

[[noreturn]] void refuse(const gguf::Model& file, const gguf::Tensor& tensor,
                         const std::string& wanted) {
  throw Error(ErrorCode::kCorruptFile,
              format("{}: {} is {} {}, wanted is {}", file.shards().front().path, tensor.name,
                     tensor.type->name, gguf::shape_text(tensor.shape()), wanted));
}

std::vector<int32_t> read_ids(const gguf::Model& file, const std::string& name) {
  const gguf::Tensor& tensor = file.get(name);
  if (tensor.type->type != quant::Type::kI32) refuse(file, tensor, "a row of I32");
  const std::vector<std::byte> raw = file.read(tensor);
  std::vector<int32_t> ids(tensor.n_values);
  std::memcpy(ids.data(), raw.data(), ids.size() * sizeof(int32_t));
  return ids;
}

std::vector<float> read_rows(const gguf::Model& file, const gguf::Tensor& tensor, size_t n_rows,
                             int64_t n_vocab) {
  if (tensor.n_rows() != static_cast<int64_t>(n_rows) || tensor.n_columns() != n_vocab ||
      tensor.type->type == quant::Type::kI32) {
    refuse(file, tensor, format("[{}, {}] of numbers", n_rows, n_vocab));
  }
  const std::vector<std::byte> raw = file.read(tensor);
  std::vector<float> values(tensor.n_values);
  quant::decode(tensor.type->type, raw.data(), values);
  return values;
}

// Of draft N in this file: empty if there is none.
struct DraftNames {
  std::string wanted, other;
};
DraftNames draft_names(size_t n, const std::string& suffix, const DraftNorm& norm) {
  if (suffix.empty()) {
    DraftNames names{format("draft{}_stream", n), format("draft{}_full", n)};
    if (!norm.per_stream) std::swap(names.wanted, names.other);
    return names;
  }
  const std::string name = format("mtp{}{}", n, suffix);
  return norm.as_the_file_says ? DraftNames{name, {}} : DraftNames{{}, name};
}

ReferenceSequence read_sequence(const gguf::Model& file, const std::string& suffix,
                                const DraftNorm& norm, Reference& into) {
  ReferenceSequence sequence;
  sequence.ids = read_ids(file, "ids" + suffix);
  const gguf::Tensor& logits = file.get("logits" + suffix);
  if (into.sequences.empty()) into.n_vocab = logits.n_columns();
  sequence.logits = read_rows(file, logits, sequence.ids.size(), into.n_vocab);
  for (size_t n = 1; n < sequence.ids.size(); ++n) {
    const DraftNames names = draft_names(n, suffix, norm);
    const gguf::Tensor* tensor = names.wanted.empty() ? nullptr : file.find(names.wanted);
    into.other_norm |= tensor == nullptr && !names.other.empty() && file.find(names.other);
    if (tensor == nullptr) break;
    sequence.drafts.push_back(read_rows(file, *tensor, sequence.ids.size() - n, into.n_vocab));
  }
  return sequence;
}

}  // namespace

Reference read_reference(const gguf::Model& file, const DraftNorm& norm) {
  Reference reference;
  if (file.find("ids") != nullptr) {
    reference.sequences.push_back(read_sequence(file, "", norm, reference));
    return reference;
  }
  for (size_t k = 0; file.find(format("ids_{}", k)) != nullptr; ++k) {
    reference.sequences.push_back(read_sequence(file, format("_{}", k), norm, reference));
  }
  if (reference.sequences.empty()) {
    throw Error(ErrorCode::kCorruptFile,
                format("{}: neither ids nor ids_0 in it, so it is no reference",
                       file.shards().front().path));
  }
  return reference;
}

}  // namespace strata::cli
