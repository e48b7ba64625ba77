#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strata/text/jinja/limits.h"
#include "strata/text/value.h"

namespace strata::text {

// A stretch of the rendered prompt. Neighbours differ in `content`; none is empty.
struct RenderedSegment {
  std::string text;
  bool content = false;  // from outside: no special tokens in it
};

struct RenderOptions {
  // Local time for strftime_now; the current one if absent.
  std::optional<std::tm> now;
};

// A model's chat template: the Jinja language as chat templates use it, with the output of Jinja2
// set up as model hubs do (trim_blocks, lstrip_blocks, loop controls, immutable sandbox).
//
// - Statements: for, if, set, macro, call, filter, with, raw, break, continue, generation (passes
//   its body through). include, import, extends, block and do are refused by name.
// - Functions: namespace, range, dict, raise_exception, strftime_now; bos_token and eos_token are
//   variables.
// - tojson is json.dumps with ensure_ascii=False: no HTML escapes, no sorted keys unless asked for;
//   arguments indent, separators, sort_keys, ensure_ascii.
// - Differences: integers have 64 bits, and leaving that range is an error; `safe` and `escape`
//   give plain strings; what lazy filters give may be read more than once, and printing it is an
//   error. `value|tojson` of a string marks only what stands in the value as content.
//
// Threads: any number may render at once.
class ChatTemplate {
 public:
  // Errors: kCorruptFile or kUnsupported, naming line and cause.
  ChatTemplate(std::string_view source, std::string bos_token, std::string eos_token,
               TemplateLimits limits = {});
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // `context` is a map: messages, tools, add_generation_prompt and what else the template reads.
  // Errors: kInvalidArgument, naming the line, for what the template raises, for types that do not
  // fit and for a bound of TemplateLimits; kUnsupported for a feature that is not there.
  std::vector<RenderedSegment> render(const Value& context,
                                      const RenderOptions& options = {}) const;

  // The template has a variable of this name: what a caller may pass as an extra argument.
  bool mentions(std::string_view variable) const;
  // Every template has a function of this name, which a variable would hide.
  static bool is_function(std::string_view name);

 private:
  struct Program;
  std::unique_ptr<const Program> program_;
};

// The text of all segments.
std::string joined(const std::vector<RenderedSegment>& segments);

}  // namespace strata::text
