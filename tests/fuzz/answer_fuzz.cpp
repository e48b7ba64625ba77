// Answers of models: the first byte chooses how calls are written, the second where the text is
// cut. Whatever the text, the pieces of a cut one are those of the whole one, and arguments are
// JSON.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "strata/server/answer/answer_parser.h"
#include "strata/text/utf8_stream.h"

namespace {

using namespace strata::server;
using Kind = AnswerPart::Kind;

std::shared_ptr<const Tools> some_tools() {
  static const auto tools = std::make_shared<const Tools>(
      Tools{{"f", "",
             std::make_shared<const Json>(
                 Json::parse(R"({"properties":{"s":{"type":"string"},"n":{"type":"number"}}})"))}});
  return tools;
}

struct Joined {
  std::string content, reasoning;
  std::vector<std::pair<std::string, std::string>> calls;
  bool operator==(const Joined&) const = default;
};

Joined parse(const AnswerFormat& format, const std::vector<std::string>& pieces) {
  AnswerParser parser(format);
  strata::text::Utf8Stream utf8;
  Joined all;
  const auto add = [&](const AnswerParts& parts) {
    for (const AnswerPart& part : parts) {
      if (part.kind == Kind::kContent) all.content += part.text;
      if (part.kind == Kind::kReasoning) all.reasoning += part.text;
      if (part.kind == Kind::kCall) all.calls.emplace_back(part.text, "");
      if (part.kind != Kind::kArguments) continue;
      if (all.calls.empty()) std::abort();
      all.calls.back().second += part.text;
    }
  };
  for (const std::string& piece : pieces) add(parser.append(utf8.append(piece)));
  add(parser.append(utf8.finish()));
  add(parser.finish());
  for (const auto& [name, arguments] : all.calls)
    if (arguments.empty() || arguments[0] != '{' || !nlohmann::json::accept(arguments))
      std::abort();
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const AnswerFormat format{true, (data[0] & 4) != 0,
                            static_cast<strata::text::CallFormat>(data[0] % 3), some_tools()};
  const std::string text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t cut = text.empty() ? 0 : data[1] % text.size();
  if (parse(format, {text}) != parse(format, {text.substr(0, cut), text.substr(cut)})) std::abort();
  return 0;
}
