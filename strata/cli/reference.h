#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strata/gguf/model.h"

namespace strata::cli {

// Stored outputs for one sequence.
struct ReferenceSequence {
  std::vector<int32_t> ids;
  std::vector<float> logits;               // [ids, n_vocab]
  std::vector<std::vector<float>> drafts;  // of step N at N - 1: [ids - N, n_vocab]
};

struct Reference {
  int64_t n_vocab = 0;
  std::vector<ReferenceSequence> sequences;
  // The file has drafts, but none that were made with the norm asked for.
  bool other_norm = false;
};

// Which form of the norm the drafts to compare with were made with.
struct DraftNorm {
  bool per_stream = false;
  bool as_the_file_says = true;  // the model's own
};

// Reads either layout (tests/golden/qwen4exp/README.md): one sequence as ids, logits,
// draftN_stream and draftN_full; or several as ids_K, logits_K and mtpN_K, whose norm is the
// model's own. Errors: kCorruptFile for arrays that are missing or do not fit together.
Reference read_reference(const gguf::Model& file, const DraftNorm& norm);

}  // namespace strata::cli
