#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "strata/base/error.h"
#include "strata/server/frontend.h"

namespace strata::server::testing {

// One token a byte (its id is the byte), and two special ones. Chats become "role:content\n" lines.
class FakeFrontend final : public Frontend {
 public:
  static constexpr int32_t kBos = 256;
  static constexpr int32_t kEnd = 257;

  Prompt chat(const ChatPrompt& prompt,
              const text::PromptBuilder::Rendered& rendered) const override {
    const std::string text = chat_text(prompt);
    if (rendered) rendered(text.size());
    Prompt result;
    for (const auto& [name, value] : prompt.variables)
      if (name == "enable_thinking" && value.as_bool()) result.in_reasoning = true;
    result.ids = encode(text, false);
    const std::lock_guard lock(mutex_);
    last_ = prompt;
    return result;
  }
  std::string chat_text(const ChatPrompt& prompt) const override {
    std::string text;
    for (const ChatMessage& message : prompt.messages) {
      if (message.content == "raise") throw Error(ErrorCode::kInvalidArgument, "line 3: raised");
      text += message.role + ":" + message.content + "\n";
    }
    return text;
  }
  text::CallFormat call_format() const override { return calls; }
  bool mentions(std::string_view) const override { return true; }
  std::vector<int32_t> encode(std::string_view text, bool) const override {
    if (on_encode) on_encode(text.size());
    std::vector<int32_t> ids;
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }
  std::vector<int32_t> encode_prompt(std::string_view text) const override {
    std::vector<int32_t> ids = encode(text, true);
    if (add_bos) ids.insert(ids.begin(), kBos);
    return ids;
  }
  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (const int32_t id : ids)
      if (id < 256) text.push_back(static_cast<char>(id));
    return text;
  }
  bool contains(int32_t id) const override { return id >= 0 && id <= kEnd; }
  size_t longest_token_bytes() const override { return 8; }
  std::span<const int32_t> stop_ids() const override { return stops_; }

  // What the last chat was.
  ChatPrompt last() const {
    const std::lock_guard lock(mutex_);
    return last_;
  }
  bool add_bos = false;
  // Set before the first request.
  text::CallFormat calls = text::CallFormat::kXml;
  // Before each text is made tokens. Set before the first request.
  std::function<void(size_t n_bytes)> on_encode;

 private:
  std::array<int32_t, 1> stops_ = {kEnd};
  mutable std::mutex mutex_;
  mutable ChatPrompt last_;
};

}  // namespace strata::server::testing
