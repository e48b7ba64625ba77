#include <algorithm>
#include <utility>

#include "strata/server/frontend.h"

namespace strata::server {
namespace {

class TextFrontend final : public Frontend {
 public:
  TextFrontend(const text::Tokenizer& tokenizer, const text::ChatTemplate& chat_template)
      : tokenizer_(tokenizer), builder_(tokenizer, chat_template) {
    for (int32_t id = 0; id < tokenizer.n_vocab(); ++id)
      longest_token_bytes_ = std::max(longest_token_bytes_, tokenizer.piece(id).size());
  }

  Prompt chat(const ChatPrompt& prompt,
              const text::PromptBuilder::Rendered& rendered) const override {
    return builder_.chat(prompt, rendered);
  }

  std::string chat_text(const ChatPrompt& prompt) const override { return builder_.text(prompt); }
  text::CallFormat call_format() const override { return builder_.call_format(); }
  bool mentions(std::string_view variable) const override { return builder_.mentions(variable); }

  std::vector<int32_t> encode(std::string_view text, bool special) const override {
    return tokenizer_.encode(text,
                             special ? text::SpecialParsing::kAllow : text::SpecialParsing::kNone);
  }
  std::vector<int32_t> encode_prompt(std::string_view text) const override {
    return text::with_bos(tokenizer_, encode(text, true));
  }
  std::string decode(std::span<const int32_t> ids) const override { return tokenizer_.decode(ids); }
  bool contains(int32_t id) const override { return tokenizer_.contains(id); }
  size_t longest_token_bytes() const override { return longest_token_bytes_; }
  std::span<const int32_t> stop_ids() const override { return tokenizer_.stop_ids(); }

 private:
  const text::Tokenizer& tokenizer_;
  const text::PromptBuilder builder_;
  size_t longest_token_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Frontend> text_frontend(const text::Tokenizer& tokenizer,
                                        const text::ChatTemplate& chat_template) {
  return std::make_unique<TextFrontend>(tokenizer, chat_template);
}

}  // namespace strata::server
