#include "strata/kernels/ops/sample.h"

#include "strata/kernels/ops/contract.h"

namespace strata::kernels {

void check(const SampleRows& args) {
  const Contract c(SampleRows::kName);
  const int64_t n = args.logits.extent(0), vocab = args.logits.extent(1);
  c.that(vocab > 0, "a vocabulary");
  c.shape(args.logits, {n, vocab}, "logits [rows, vocab]");
  c.shape(args.params, {n}, "params [rows]");
  c.shape(args.chosen, {n}, "chosen [rows]");
  if (args.masks.data() != nullptr) {
    c.shape(args.masks, {n, mask_words(vocab)}, "masks [rows, words]");
  }
  if (args.logprobs.data() != nullptr) c.shape(args.logprobs, {n}, "logprobs [rows]");
}

}  // namespace strata::kernels
