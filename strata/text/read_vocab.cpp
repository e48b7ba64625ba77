#include <algorithm>
#include <limits>
#include <unordered_set>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/gguf/metadata.h"
#include "strata/text/code_points.h"
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

std::string vocab_warning(const VocabData& data) {
  std::unordered_set<std::string> made;
  for (const std::string& merge : data.merges) {
    const size_t space = merge.find(' ');
    if (space == std::string::npos) continue;
    made.insert(merge.substr(0, space) + merge.substr(space + 1));
  }
  size_t n_long = 0, n_unmade = 0;
  for (size_t i = 0; i < std::min(data.tokens.size(), data.types.size()); ++i) {
    const std::string& token = data.tokens[i];
    // Tokens of one byte need no merge. Added tokens hold characters that no merge has.
    const bool single = count_code_points(token) < 2;
    if (data.types[i] != static_cast<int32_t>(TokenType::kNormal) || single) continue;
    ++n_long;
    n_unmade += made.contains(token) ? 0 : 1;
  }
  // A few such tokens are in good files, too.
  if (n_unmade * 4 <= n_long) return {};
  return format(
      "tokenizer.ggml.merges has {} merges, and none for {} of {} tokens: text is cut into other "
      "tokens than the model knows, and answers will be bad",
      data.merges.size(), n_unmade, n_long);
}

}  // namespace strata::text
