#include "strata/server/answer/call_parser.h"

#include <algorithm>

#include "strata/base/text.h"

namespace strata::server {

size_t leading_space(std::string_view text) {
  return std::min(text.find_first_not_of(kWhiteSpace), text.size());
}

Found starts(std::string_view text, std::string_view with, bool at_end) {
  if (text.starts_with(with)) return Found::kYes;
  return !at_end && with.starts_with(text) ? Found::kMaybe : Found::kNo;
}

Found find_call(text::CallFormat format, const Tools& tools, std::string& text, bool at_end,
                AnswerParts& out, std::unique_ptr<CallParser>& parser) {
  if (format == text::CallFormat::kNone) return Found::kNo;
  const bool xml = format == text::CallFormat::kXml;
  const Tool* tool = nullptr;
  const Found found =
      xml ? find_xml_call(tools, text, at_end, tool) : find_json_call(tools, text, at_end, tool);
  if (found != Found::kYes) return found;
  add_part(out, AnswerPart::Kind::kCall, tool->name);
  parser = xml ? xml_call(*tool) : json_call();
  return Found::kYes;
}

}  // namespace strata::server
