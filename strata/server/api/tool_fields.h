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

// "tools": [{"type":"function","function":{"name","description","parameters","strict"}}].
// Errors of all: RequestError naming the path.
Tools read_tools(const Fields& body);
// "auto", "none", "required", or {"type":"function","function":{"name"}}.
ToolChoice read_tool_choice(const Fields& body, const Tools& tools);

// For other endpoints: a name fit for the calls of a template; a tool of its parts.
void check_tool_name(const std::string& name, const std::string& path);
Tool make_tool(std::string name, std::string description, const Json* parameters,
               const std::string& parameters_path);
void check_tools(const Tools& tools, const std::string& path);
// `path`: of what names it.
void check_choice(const ToolChoice& choice, const Tools& tools, const std::string& path);

// As templates show tools.
text::Value tool_value(const Tool& tool);

}  // namespace strata::server
