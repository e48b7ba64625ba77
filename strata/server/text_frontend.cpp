#include <utility>

#include "strata/server/frontend.h"

namespace strata::server {
namespace {

class TextFrontend final : public Frontend {
 public:
  TextFrontend(const text::Tokenizer& tokenizer, const text::ChatTemplate& chat_template)
      : tokenizer_(tokenizer), builder_(tokenizer, chat_template) {}

  Prompt chat(const ChatPrompt& prompt) const override { return builder_.chat(prompt); }

  std::vector<int32_t> encode(std::string_view text, bool special) const override {
    return tokenizer_.encode(text,
                             special ? text::SpecialParsing::kAllow : text::SpecialParsing::kNone);
  }
  std::vector<int32_t> encode_prompt(std::string_view text) const override {
    return text::with_bos(tokenizer_, encode(text, true));
  }
  std::string decode(std::span<const int32_t> ids) const override { return tokenizer_.decode(ids); }
  bool contains(int32_t id) const override { return tokenizer_.contains(id); }
  std::span<const int32_t> stop_ids() const override { return tokenizer_.stop_ids(); }

 private:
  const text::Tokenizer& tokenizer_;
  const text::PromptBuilder builder_;
};

}  // namespace

std::unique_ptr<Frontend> text_frontend(const text::Tokenizer& tokenizer,
                                        const text::ChatTemplate& chat_template) {
  return std::make_unique<TextFrontend>(tokenizer, chat_template);
}

}  // namespace strata::server
