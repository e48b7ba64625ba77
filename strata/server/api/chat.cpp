#include "strata/server/api/chat.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "strata/server/api/chat_messages.h"
#include "strata/server/api/chat_request.h"
#include "strata/server/api/chat_shape.h"
#include "strata/server/fields.h"
#include "strata/server/json.h"
#include "strata/server/request_error.h"

namespace strata::server {
namespace {

void refuse_unsupported(const Fields& body) {
  refuse_unless_neutral(body, {"functions", "audio", "web_search_options", "prediction"});
  if (const Json* call = body.find("function_call");
      call != nullptr && *call != "none" && *call != "auto")
    unsupported_field(body.path("function_call"), "is not supported; use tool_choice");
  if (const Json* modalities = body.array("modalities", 16))
    for (const Json& each : *modalities)
      if (each != "text") unsupported_field(body.path("modalities"), "only text is supported");
}

void read_response_format(const Fields& body, ChatRequest& request) {
  const Json* json = body.object("response_format");
  if (json == nullptr) return;
  const Fields fields(*json, body.path("response_format"));
  const std::string type = fields.string("type").value_or("");
  if (type == "text") return;
  if (type == "json_object") return ask_for_json(request, nullptr, body.path("response_format"));
  if (type != "json_schema")
    unsupported_field(fields.path("type"), "must be text, json_object or json_schema");
  const Json* named = fields.object("json_schema");
  if (named == nullptr) refuse_field(fields.path("json_schema"), "is missing");
  const Fields inner(*named, fields.path("json_schema"));
  const Json* schema = inner.find("schema");
  if (schema == nullptr) refuse_field(inner.path("schema"), "is missing");
  ask_for_json(request, schema, inner.path("schema"));
}

int32_t read_logprobs(const Fields& body) {
  const bool wanted = body.boolean("logprobs").value_or(false);
  const auto top = body.integer("top_logprobs", 0, wire::kMaxTopLogprobs);
  if (top && !wanted) refuse_field(body.path("top_logprobs"), "only with \"logprobs\": true");
  return wanted ? static_cast<int32_t>(top.value_or(0)) : -1;
}

}  // namespace

ChatRequest read_chat_request(const Fields& body, const Services& services) {
  body.string("model");
  refuse_unsupported(body);
  ChatRequest request;
  request.messages = read_messages(body);
  request.tools = read_tools(body, kChatTools);
  request.choice = read_tool_choice(body, request.tools);
  request.parallel_calls = body.boolean("parallel_tool_calls").value_or(true);
  request.variables = read_variables(body);
  read_response_format(body, request);
  read_grammar_fields(body, request);
  if (const auto budget = body.integer("reasoning_budget", 0, INT32_MAX))
    request.reasoning_budget = static_cast<int32_t>(*budget);
  request.fields =
      read_generation_fields(body, services.config.default_sampling, services.frontend);
  request.fields.n_top_logprobs = read_logprobs(body);
  return request;
}

Generation read_chat(const std::string& body, const std::string& request_id,
                     const Services& services) {
  const Json json = parse_json(body);
  ChatRequest request = read_chat_request(Fields(json, ""), services);
  OpenAiStyle style{request_id, services.config.model_name, request.fields.include_usage,
                    request.fields.n_top_logprobs >= 0};
  return make_chat(std::move(request), chat_shape(std::move(style)), services);
}

}  // namespace strata::server
