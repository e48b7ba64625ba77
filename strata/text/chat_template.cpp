#include "strata/text/chat_template.h"

#include <algorithm>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/jinja/builtins.h"
#include "strata/text/jinja/parser.h"
#include "strata/text/jinja/run.h"

namespace strata::text {

struct ChatTemplate::Program {
  TemplateTree tree;
  TemplateLimits limits;
  Value tokens;  // bos_token and eos_token by name
};

ChatTemplate::ChatTemplate(std::string_view source, std::string bos_token, std::string eos_token,
                           TemplateLimits limits) {
  try {
    program_ = std::make_unique<const Program>(
        Program{parse_template(source, limits), limits,
                Value::map(Value::Members{{"bos_token", Value::scaffold(std::move(bos_token))},
                                          {"eos_token", Value::scaffold(std::move(eos_token))}})});
  } catch (Error& e) {
    e.with("chat template");
    // A template is part of a file.
    if (e.code() == ErrorCode::kInvalidArgument) throw Error(ErrorCode::kCorruptFile, e.what());
    throw;
  }
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::vector<RenderedSegment> ChatTemplate::render(const Value& context,
                                                  const RenderOptions& options) const {
  TemplateRun run(program_->tree, program_->limits, options);
  run.define(program_->tokens.as_map());
  if (!context.is_map()) {
    throw Error(ErrorCode::kInvalidArgument, "chat template: the context is not a map");
  }
  run.define(context.as_map());
  try {
    const MarkedText text = run.run();
    std::vector<RenderedSegment> segments;
    text.each_piece([&segments](std::string_view piece, Origin origin) {
      segments.push_back({std::string(piece), origin == Origin::kContent});
    });
    return segments;
  } catch (Error& e) {
    e.with(format("chat template: line {}", run.line()));
    throw;
  }
}

bool ChatTemplate::mentions(std::string_view variable) const {
  const std::vector<std::string>& names = program_->tree.names;
  return std::find(names.begin() + kWellKnownNames, names.end(), variable) != names.end();
}

bool ChatTemplate::is_function(std::string_view name) { return find_function(name) != nullptr; }

std::string joined(const std::vector<RenderedSegment>& segments) {
  std::string out;
  for (const RenderedSegment& segment : segments) out += segment.text;
  return out;
}

}  // namespace strata::text
