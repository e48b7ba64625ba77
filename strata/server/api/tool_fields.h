#pragma once

#include <string>
#include <string_view>

#include "strata/server/answer/tools.h"
#include "strata/server/fields.h"
#include "strata/text/value.h"

namespace strata::server {

struct ToolChoice {
  enum class Kind {
    kAuto,      // the model decides
    kNone,      // it does not know of the tools
    kRequired,  // it calls one of them
    kNamed,     // it calls this one
  };
  Kind kind = Kind::kAuto;
  std::string name;
};

inline constexpr size_t kMaxTools = 1024;

// How an endpoint writes a tool.
struct ToolForm {
  const char* type;    // of all tools that are taken; may be left out
  const char* only;    // these, in words
  const char* inside;  // the object that has the parts; null: they stand beside the type
  const char* schema;  // the part that is the schema of the arguments
};
// {"type":"function","function":{"name","description","parameters","strict"}}
inline constexpr ToolForm kChatTools{"function", "functions", "function", "parameters"};
inline constexpr ToolForm kResponseTools{"function", "functions", nullptr, "parameters"};
inline constexpr ToolForm kAnthropicTools{"custom", "custom tools", nullptr, "input_schema"};

// "tools" of the body. Errors of all: RequestError naming the path.
Tools read_tools(const Fields& body, const ToolForm& form);
// "auto", "none", "required", or {"type":"function","function":{"name"}}.
ToolChoice read_tool_choice(const Fields& body, const Tools& tools);

// Of a choice that another endpoint has read. `path`: of what names it.
void check_choice(const ToolChoice& choice, const Tools& tools, const std::string& path);

// As templates show tools.
text::Value tool_value(const Tool& tool);

}  // namespace strata::server
