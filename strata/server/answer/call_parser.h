#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "strata/server/answer/answer_part.h"
#include "strata/server/answer/tools.h"
#include "strata/text/prompt.h"

namespace strata::server {

inline constexpr std::string_view kCallOpen = "<tool_call>";
inline constexpr std::string_view kCallClose = "</tool_call>";
// Bytes of the name of a tool or a parameter.
inline constexpr size_t kMaxCallName = 256;

// Takes one call off the front of a text that grows. Whatever the text is, what comes out is one
// call with arguments that are JSON; what does not belong to it stays in the text.
class CallParser {
 public:
  virtual ~CallParser() = default;
  // Moves what is certain from `text` to `out`. True: the call is over. `at_end`: no more will
  // come; then the call is always over.
  virtual bool advance(std::string& text, bool at_end, AnswerParts& out) = 0;
};

enum class Found {
  kYes,
  kNo,
  kMaybe,  // more text will tell
};

// Judges what stands behind kCallOpen. kYes: `text` is a call of one of `tools`; what names it is
// taken off, the kCall is in `out`, and `parser` goes on from there.
Found find_call(text::CallFormat format, const Tools& tools, std::string& text, bool at_end,
                AnswerParts& out, std::unique_ptr<CallParser>& parser);

// How much of `text` is white space in front.
size_t leading_space(std::string_view text);
// What kMaybe and kYes mean for a fixed text at the front of another.
Found starts(std::string_view text, std::string_view with, bool at_end);

std::unique_ptr<CallParser> xml_call(const Tool& tool);
std::unique_ptr<CallParser> json_call();
Found find_xml_call(const Tools& tools, std::string& text, bool at_end, const Tool*& tool);
Found find_json_call(const Tools& tools, std::string& text, bool at_end, const Tool*& tool);

}  // namespace strata::server
