#include <limits>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/gguf/metadata.h"
#include "strata/text/vocab.h"

namespace strata::text {
namespace {

int32_t checked_int32(const gguf::Metadata& metadata, std::string_view key, int64_t value) {
  if (value < 0 || value > std::numeric_limits<int32_t>::max()) {
    throw Error(ErrorCode::kCorruptFile, format("{}: {} holds {}", metadata.file(), key, value));
  }
  return static_cast<int32_t>(value);
}

std::optional<int32_t> find_id(const gguf::Metadata& metadata, std::string_view key) {
  const std::optional<int64_t> id = metadata.find_i64(key);
  if (!id) return std::nullopt;
  return checked_int32(metadata, key, *id);
}

std::vector<std::string> get_strings(const gguf::Metadata& metadata, std::string_view key) {
  const std::span<const std::string_view> strings = metadata.get_strings(key);
  return {strings.begin(), strings.end()};
}

}  // namespace

VocabData read_vocab(const gguf::Metadata& metadata) {
  VocabData data;
  data.model = metadata.get_string("tokenizer.ggml.model");
  data.pre = metadata.get_string("tokenizer.ggml.pre");
  data.tokens = get_strings(metadata, "tokenizer.ggml.tokens");
  constexpr std::string_view kTypes = "tokenizer.ggml.token_type";
  for (const int64_t type : metadata.get_i64s(kTypes)) {
    data.types.push_back(checked_int32(metadata, kTypes, type));
  }
  data.merges = get_strings(metadata, "tokenizer.ggml.merges");
  data.eos_id = find_id(metadata, "tokenizer.ggml.eos_token_id");
  data.eot_id = find_id(metadata, "tokenizer.ggml.eot_token_id");
  data.eom_id = find_id(metadata, "tokenizer.ggml.eom_token_id");
  data.bos_id = find_id(metadata, "tokenizer.ggml.bos_token_id");
  data.padding_id = find_id(metadata, "tokenizer.ggml.padding_token_id");
  data.add_bos = metadata.find_bool("tokenizer.ggml.add_bos_token").value_or(false);
  return data;
}

}  // namespace strata::text
