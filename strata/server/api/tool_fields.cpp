#include "strata/server/api/tool_fields.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "strata/base/format.h"
#include "strata/server/request_error.h"

namespace strata::server {
namespace {

constexpr size_t kMaxNameBytes = 128;

void check_tool_name(const std::string& name, const std::string& path) {
  if (name.empty()) refuse_field(path, "must not be empty");
  if (name.size() > kMaxNameBytes)
    refuse_field(path, format("has {} bytes, at most {} are taken", name.size(), kMaxNameBytes));
  for (const char c : name)
    if (static_cast<unsigned char>(c) <= ' ' ||
        std::string_view("<>\"\\\x7F").find(c) != std::string_view::npos)
      refuse_field(path, "must be without white space and without < > \" \\");
}

Tool make_tool(std::string name, std::string description, const Json* parameters,
               const std::string& parameters_path) {
  Json schema = parameters == nullptr ? Json::object() : *parameters;
  const auto type = schema.find("type");
  if (type != schema.end() && *type != "object")
    refuse_field(parameters_path + ".type", "must be \"object\": arguments have names");
  return {std::move(name), std::move(description), std::make_shared<const Json>(std::move(schema)),
          false};
}

void check_tools(const Tools& tools, const std::string& path) {
  std::set<std::string> names;
  for (size_t i = 0; i < tools.size(); ++i)
    if (!names.insert(tools[i].name).second)
      refuse_field(format("{}[{}]", path, i),
                   format("there is a tool \"{}\" already", tools[i].name));
}

Tool read_parts(const Fields& tool, const ToolForm& form) {
  const auto name = tool.string("name");
  if (!name) refuse_field(tool.path("name"), "is missing");
  check_tool_name(*name, tool.path("name"));
  Tool read = make_tool(*name, tool.string("description").value_or(""), tool.object(form.schema),
                        tool.path(form.schema));
  read.strict = tool.boolean("strict").value_or(false);
  return read;
}

Tool read_tool(const Fields& tool, const ToolForm& form) {
  if (tool.string("type").value_or(form.type) != form.type)
    unsupported_field(tool.path("type"), format("only {} are supported", form.only));
  if (form.inside == nullptr) return read_parts(tool, form);
  const Json* json = tool.object(form.inside);
  if (json == nullptr) refuse_field(tool.path(form.inside), "is missing");
  return read_parts(Fields(*json, tool.path(form.inside)), form);
}

}  // namespace

void check_choice(const ToolChoice& choice, const Tools& tools, const std::string& path) {
  const bool forces =
      choice.kind == ToolChoice::Kind::kRequired || choice.kind == ToolChoice::Kind::kNamed;
  if (forces && tools.empty()) refuse_field(path, "asks for a call, and there are no tools");
  if (choice.kind == ToolChoice::Kind::kNamed && find_tool(tools, choice.name) == nullptr)
    refuse_field(path, format("no tool is called \"{}\"", choice.name));
}

Tools read_tools(const Fields& body, const ToolForm& form) {
  const Json* list = body.array("tools", kMaxTools);
  if (list == nullptr) return {};
  Tools tools;
  for (size_t i = 0; i < list->size(); ++i)
    tools.push_back(read_tool(Fields((*list)[i], format("{}[{}]", body.path("tools"), i)), form));
  check_tools(tools, body.path("tools"));
  return tools;
}

ToolChoice read_tool_choice(const Fields& body, const Tools& tools) {
  ToolChoice choice;
  const Json* value = body.find("tool_choice");
  if (value == nullptr) return choice;
  const std::string path = body.path("tool_choice");
  if (value->is_string()) {
    if (*value == "none")
      choice.kind = ToolChoice::Kind::kNone;
    else if (*value == "required")
      choice.kind = ToolChoice::Kind::kRequired;
    else if (*value != "auto")
      refuse_field(path, "must be \"auto\", \"none\", \"required\" or name a function");
    check_choice(choice, tools, path);
    return choice;
  }
  const Fields fields(*value, path);
  if (fields.string("type").value_or("") != "function")
    unsupported_field(fields.path("type"), "only \"function\" is supported");
  const Json* function_json = fields.object("function");
  if (function_json == nullptr) refuse_field(fields.path("function"), "is missing");
  const Fields function(*function_json, fields.path("function"));
  choice.kind = ToolChoice::Kind::kNamed;
  choice.name = function.string("name").value_or("");
  check_choice(choice, tools, function.path("name"));
  return choice;
}

text::Value tool_value(const Tool& tool) {
  Json function = {{"name", tool.name}};
  if (!tool.description.empty()) function["description"] = tool.description;
  function["parameters"] = *tool.parameters;
  return to_value(Json{{"type", "function"}, {"function", std::move(function)}});
}

}  // namespace strata::server
