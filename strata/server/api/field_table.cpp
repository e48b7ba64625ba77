#include "strata/server/api/field_table.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "strata/base/format.h"

namespace strata::server {
namespace {

constexpr FieldUse kRefused = FieldUse::kRefused;
constexpr FieldUse kIgnored = FieldUse::kIgnored;
constexpr FieldUse kTaken = FieldUse::kTaken;

// Of all endpoints that write text.
constexpr FieldRow kSampling[] = {
    {"model", "string", kTaken, "any name; the answer reports the real one"},
    {"stream", "boolean", kTaken, "default false"},
    {"temperature", "number", kTaken, "0 to 100; 0 is greedy; default: the server's"},
    {"top_k", "integer", kTaken, "from 0; 0: off"},
    {"top_p", "number", kTaken, "above 0, up to 1; 1: off"},
    {"min_p", "number", kTaken, "0 to 1; 0: off"},
    {"presence_penalty", "number", kTaken, "-2 to 2"},
    {"frequency_penalty", "number", kTaken, "-2 to 2"},
    {"repetition_penalty", "number", kTaken, "0.000001 to 1000000; 1: off"},
    {"logit_bias", "object", kTaken, "token id to -100 .. 100, at most 4096"},
    {"seed", "integer", kTaken, "0 to 2^64 - 1; absent: another answer each time"},
    {"user", "string", kIgnored, ""},
    {"metadata", "object", kIgnored, "the answer of /v1/responses repeats it"},
    {"service_tier", "string", kIgnored, ""},
};

constexpr FieldRow kOpenAi[] = {
    {"max_tokens", "integer", kTaken, "from 1; the smaller of the two holds; absent: all the room"},
    {"max_completion_tokens", "integer", kTaken, "from 1"},
    {"stop", "string|array", kTaken, "up to 16, of 1 to 1024 bytes; not part of the answer"},
    {"n", "integer", kTaken, "1 to 16 answers; each has a seed of its own"},
    {"best_of", "integer", kTaken, "1 alone"},
    {"stream_options", "object", kTaken, "include_usage; with stream alone"},
    {"grammar", "string", kTaken, "GBNF that the answer must follow"},
    {"regex", "string", kTaken, "a regular expression that the whole answer must match"},
    {"store", "boolean", kIgnored, "nothing is stored"},
};

constexpr FieldRow kChat[] = {
    {"messages", "array", kTaken, "1 to 10,000"},
    {"tools", "array", kTaken, "functions, at most 1024; strict: calls are held to the schema"},
    {"tool_choice", "string|object", kTaken, "auto, none, required, or a function by name"},
    {"parallel_tool_calls", "boolean", kTaken,
     "false: one call where calls are forced; default true"},
    {"response_format", "object", kTaken, "text, json_object, json_schema"},
    {"logprobs", "boolean", kTaken, "of each token of the answer but the one that ends it"},
    {"top_logprobs", "integer", kTaken, "0 to 20; with logprobs alone"},
    {"reasoning_effort", "string", kTaken,
     "none, minimal, low, medium, high, xhigh; none: no thinking"},
    {"reasoning_budget", "integer", kTaken, "tokens from 0; then a line wraps the thinking up"},
    {"enable_thinking", "boolean", kTaken, "as in chat_template_kwargs"},
    {"chat_template_kwargs", "object", kTaken, "variables of the chat template"},
    {"modalities", "array", kTaken, "text alone"},
    {"functions", "array", kRefused, "use tools"},
    {"audio", "object", kRefused, ""},
    {"prediction", "object", kRefused, ""},
    {"web_search_options", "object", kRefused, ""},
};

constexpr FieldRow kCompletion[] = {
    {"prompt", "string|array", kTaken, "a text, token ids, or a list of one of these"},
    {"logprobs", "integer", kTaken, "0 to 20"},
    {"echo", "boolean", kRefused, ""},
    {"suffix", "string", kRefused, ""},
    {"tools", "array", kRefused, ""},
    {"response_format", "object", kRefused, "use grammar or regex"},
};

constexpr FieldRow kMessage[] = {
    {"messages", "array", kTaken, "1 to 10,000; the last one a user's"},
    {"max_tokens", "integer", kTaken, "from 1; must be there, but to count"},
    {"system", "string|array", kTaken, "text"},
    {"stop_sequences", "string|array", kTaken, "as stop of the others"},
    {"tools", "array", kTaken, "custom tools"},
    {"tool_choice", "object", kTaken, "auto, any, tool, none; disable_parallel_tool_use"},
    {"thinking", "object", kTaken,
     "enabled with budget_tokens, adaptive, disabled; default disabled"},
    {"container", "string", kRefused, ""},
    {"mcp_servers", "array", kRefused, ""},
    {"context_management", "object", kRefused, ""},
    {"output_format", "object", kRefused, ""},
    {"output_config", "object", kRefused, ""},
};

constexpr FieldRow kResponse[] = {
    {"input", "string|array", kTaken,
     "text, or items: message, function_call, function_call_output, reasoning"},
    {"instructions", "string", kTaken, "a system message in front"},
    {"max_output_tokens", "integer", kTaken, "from 1"},
    {"tools", "array", kTaken, "functions"},
    {"tool_choice", "string|object", kTaken, "auto, none, required, or a function by name"},
    {"parallel_tool_calls", "boolean", kTaken, "default true"},
    {"reasoning", "object", kTaken, "effort"},
    {"text", "object", kTaken, "format: text, json_object, json_schema"},
    {"include", "array", kTaken, "reasoning.encrypted_content alone, which adds nothing"},
    {"truncation", "string", kTaken, "disabled alone: nothing is ever cut"},
    {"store", "boolean", kIgnored, "nothing is stored"},
    {"previous_response_id", "string", kRefused, "no state is kept; send the items"},
    {"conversation", "string", kRefused, ""},
    {"background", "boolean", kRefused, ""},
    {"prompt", "object", kRefused, ""},
    {"max_tool_calls", "integer", kRefused, ""},
    {"top_logprobs", "integer", kRefused, ""},
};

constexpr FieldRow kTokenize[] = {
    {"content", "string", kTaken, "the text"},
    {"parse_special", "boolean", kTaken, "special tokens in the text count; default false"},
    {"add_special", "boolean", kTaken, "with what the model wants in front; default false"},
};
constexpr FieldRow kDetokenize[] = {{"tokens", "array", kTaken, "token ids"}};

constexpr EndpointRow kEndpoints[] = {
    {"POST", "/v1/chat/completions", "An answer to a chat, whole or as a stream", true, kChat,
     kOpenAi},
    {"POST", "/v1/completions", "The continuation of a text", true, kCompletion, kOpenAi},
    {"POST", "/v1/messages", "Anthropic's API", true, kMessage, {}},
    {"POST", "/v1/messages/count_tokens", "The tokens of such a request", true, kMessage, {}},
    {"POST", "/v1/responses", "OpenAI's Responses API, without state", true, kResponse, {}},
    {"GET", "/v1/models", "The one model", true, {}, {}},
    {"POST", "/tokenize", "Text to token ids", true, kTokenize, {}},
    {"POST", "/detokenize", "Token ids to text", true, kDetokenize, {}},
    {"POST", "/apply-template", "The prompt of a chat as text", true, kChat, kOpenAi},
    {"GET", "/props", "What this server offers", true, {}, {}},
    {"GET", "/slots", "The answers under way, without their text", true, {}, {}},
    {"GET", "/metrics", "Counters and gauges in the text format of Prometheus", true, {}, {}},
    {"GET", "/health", "The state of the engine", false, {}, {}},
    {"GET", "/openapi.json", "This description", false, {}, {}},
};

bool samples(const EndpointRow& row) {
  return row.path.starts_with("/v1/") && row.method == "POST";
}

template <class Use>
void each_field(const EndpointRow& row, const Use& use) {
  for (const FieldRow& field : row.fields) use(field);
  for (const FieldRow& field : row.shared_fields) use(field);
  if (samples(row) || row.path == "/apply-template")
    for (const FieldRow& field : kSampling) use(field);
}

Json type_json(std::string_view type) {
  Json types = Json::array();
  for (size_t at = 0; at <= type.size();) {
    const size_t end = std::min(type.find('|', at), type.size());
    types.push_back(type.substr(at, end - at));
    at = end + 1;
  }
  types.push_back("null");
  return types;
}

const char* name(FieldUse use) {
  return use == kTaken ? "taken" : use == kRefused ? "refused" : "ignored";
}

}  // namespace

std::span<const EndpointRow> endpoint_table() { return kEndpoints; }

Json openapi(std::string_view version) {
  Json paths = Json::object();
  for (const EndpointRow& row : kEndpoints) {
    Json operation = {{"summary", row.summary}};
    if (row.method == "POST") {
      Json properties = Json::object();
      each_field(row, [&](const FieldRow& field) {
        if (field.use != kTaken) return;
        properties[std::string(field.name)] = {{"type", type_json(field.type)},
                                               {"description", field.note}};
      });
      operation["requestBody"] = {
          {"required", true},
          {"content",
           {{"application/json",
             {{"schema", {{"type", "object"}, {"properties", std::move(properties)}}}}}}}};
    }
    operation["responses"] = {{"200", {{"description", "OK"}}},
                              {"default", {{"description", "An error, see docs/api.md"}}}};
    if (!row.needs_key) operation["security"] = Json::array();
    paths[std::string(row.path)][row.method == "GET" ? "get" : "post"] = std::move(operation);
  }
  return {
      {"openapi", "3.1.0"},
      {"info", {{"title", "strata"}, {"version", version}}},
      {"paths", std::move(paths)},
      {"components", {{"securitySchemes", {{"key", {{"type", "http"}, {"scheme", "bearer"}}}}}}},
      {"security", Json::array({{{"key", Json::array()}}})}};
}

std::string fields_page() {
  std::string page =
      "# Every field of every endpoint\n\n"
      "Made from the table that the server itself is described with (`/openapi.json`); a test asks "
      "the "
      "server whether\nit is true. *taken*: has the meaning of its API, within the range given; "
      "*refused*: "
      "status 400 with the name of the\nfield, unless it says no (`null`, `false`, `\"\"`, `[]`, "
      "`{}`); "
      "*ignored*: changes nothing. Fields that are not\nlisted are ignored. [api.md](api.md) says "
      "more.\n";
  for (const EndpointRow& row : kEndpoints) {
    page += format("\n## {} {}\n\n{}.{}\n", row.method, row.path, row.summary,
                   row.needs_key ? "" : " No key is asked for.");
    bool any = false;
    each_field(row, [&](const FieldRow& field) {
      if (!std::exchange(any, true))
        page += "\n| field | type | use | |\n| --- | --- | --- | --- |\n";
      std::string type(field.type);
      for (size_t at = 0; (at = type.find('|', at)) != std::string::npos; at += 4)
        type.replace(at, 1, " or ");
      page += format("| `{}` | {} | {} | {} |\n", field.name, type, name(field.use), field.note);
    });
  }
  return page;
}

}  // namespace strata::server
