// Any bytes as a chat template and its context.
// Input: the template, a zero byte, then bytes that choose the values of the context's variables.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/text/chat_template.h"

namespace strata::text {
namespace {

// Stands in every text of the context, and in no template: where it comes out, content came out.
constexpr std::string_view kMark = "\xEE\x80\x80";  // U+E000

// Makes values out of bytes; out of nulls when there are none left.
class ContextMaker {
 public:
  explicit ContextMaker(std::string_view bytes) : bytes_(bytes) {}

  Value context() {
    Value::Members members;
    for (const char* name :
         {"messages", "tools", "add_generation_prompt", "m", "l", "d", "s", "n", "i", "f", "x"}) {
      members.emplace_back(name, value(0));
    }
    return Value::map(std::move(members));
  }

 private:
  uint8_t next() {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return byte;
  }

  std::string text() {
    static constexpr std::string_view kWords[] = {"user",    "assistant", "system", "tool",
                                                  "content", "role",      "type"};
    const uint8_t choice = next();
    if (choice < std::size(kWords)) return std::string(kWords[choice]);
    std::string out(kMark);
    out += bytes_.substr(0, choice % 16);
    bytes_.remove_prefix(std::min<size_t>(choice % 16, bytes_.size()));
    return out;
  }

  Value value(int depth) {
    const uint8_t choice = next();
    const size_t n = choice / 16 % 4;
    switch (depth < 6 ? choice % 9 : choice % 6) {
      case 0:
        return {};
      case 1:
        return Value::boolean(n % 2 == 0);
      case 2:
        return Value::integer(static_cast<int8_t>(next()));
      case 3:
        return Value::number((static_cast<int8_t>(next())) / 4.0);
      case 4:
      case 5:
        return Value::content(text());
      case 6:
        return Value::scaffold("user");
      case 7: {
        Value::Items items;
        for (size_t i = 0; i < n; ++i) items.push_back(value(depth + 1));
        return Value::list(std::move(items));
      }
      default: {
        Value::Members members;
        for (size_t i = 0; i < n; ++i) {
          std::string key = text();
          members.emplace_back(std::move(key), value(depth + 1));
        }
        return Value::map(std::move(members));
      }
    }
  }

  std::string_view bytes_;
};

void check(const std::vector<RenderedSegment>& segments, bool marks_are_content) {
  for (size_t i = 0; i < segments.size(); ++i) {
    STRATA_CHECK(!segments[i].text.empty());
    STRATA_CHECK(i == 0 || segments[i].content != segments[i - 1].content);
    STRATA_CHECK(!marks_are_content || segments[i].content ||
                 segments[i].text.find(kMark) == std::string::npos);
  }
}

void run(std::string_view input) {
  const size_t zero = std::min(input.find('\0'), input.size());
  const std::string_view source = input.substr(0, zero);
  TemplateLimits limits;
  limits.max_steps = 200'000;
  limits.max_made_bytes = 16 << 20;
  limits.max_output_bytes = 1 << 20;
  bool is_read = false;
  try {
    const ChatTemplate chat_template(source, "<s>", "</s>", limits);
    is_read = true;
    ContextMaker maker(input.substr(std::min(zero + 1, input.size())));
    const std::vector<RenderedSegment> segments =
        chat_template.render(maker.context(), {.now = std::tm{}});
    // A template can write the mark itself only as such or with an escape.
    const bool written =
        source.find(kMark) != std::string_view::npos || source.find('\\') != std::string_view::npos;
    check(segments, !written);
    STRATA_CHECK(joined(segments).size() <= limits.max_output_bytes + (4 << 20));
  } catch (const Error& e) {
    const ErrorCode expected = is_read ? ErrorCode::kInvalidArgument : ErrorCode::kCorruptFile;
    STRATA_CHECK(e.code() == expected || e.code() == ErrorCode::kUnsupported);
    STRATA_CHECK(std::string_view(e.what()).find("line ") != std::string_view::npos ||
                 e.message().find("bytes, more than") != std::string::npos);
  }
}

}  // namespace
}  // namespace strata::text

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  strata::text::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
