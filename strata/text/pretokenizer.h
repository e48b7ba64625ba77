#pragma once

#include <memory>
#include <string_view>
#include <vector>

namespace strata::text {

// Cuts text into the pieces inside which BPE may join bytes. Immutable; any thread.
// Source: the patterns of the Qwen2 and Qwen3.5 tokenizers, see pretokenizer.cpp.
class Pretokenizer {
 public:
  // `name` is the value of tokenizer.ggml.pre: "qwen2" or "qwen35".
  // Errors: kUnsupported, naming it, for any other.
  explicit Pretokenizer(std::string_view name);
  ~Pretokenizer();
  Pretokenizer(Pretokenizer&&) noexcept;
  Pretokenizer& operator=(Pretokenizer&&) noexcept;

  // Appends the pieces of `text`, in order and without gaps, to `pieces`; they point into `text`.
  // A maximal run of bytes that are not UTF-8 is a piece of its own, and ends the text before it.
  // Linear in the bytes of `text`; the stack it takes does not depend on them.
  void split(std::string_view text, std::vector<std::string_view>& pieces) const;

 private:
  struct Code;
  std::unique_ptr<Code> code_;
};

}  // namespace strata::text
