#include "strata/server/api/completions.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "strata/base/format.h"
#include "strata/server/api/chat_request.h"
#include "strata/server/api/chat_shape.h"
#include "strata/server/api/token_ids.h"
#include "strata/server/fields.h"
#include "strata/server/json.h"
#include "strata/server/request_error.h"
#include "strata/server/sampling_fields.h"

namespace strata::server {
namespace {

std::vector<int32_t> read_prompt(const Fields& body, std::optional<int32_t> max_tokens,
                                 const Services& services) {
  const Json* prompt = body.find("prompt");
  std::string path = body.path("prompt");
  if (prompt == nullptr) refuse_field(path, "is missing");
  const auto holds_prompts = [](const Json& list) {
    return list.is_array() && !list.empty() && (list[0].is_string() || list[0].is_array());
  };
  if (holds_prompts(*prompt)) {
    if (prompt->size() > 1) unsupported_field(path, "only one prompt a request is answered");
    prompt = &(*prompt)[0];
    path += "[0]";
  }
  std::vector<int32_t> ids;
  if (prompt->is_string()) {
    const auto& text = prompt->get_ref<const std::string&>();
    refuse_too_long(text.size(), max_tokens, services);
    ids = services.frontend.encode_prompt(text);
  } else if (prompt->is_array()) {
    ids = read_token_ids(*prompt, path, services.frontend);
  } else {
    refuse_field(path, format("must be a string or a list of token ids, not {}", kind_of(*prompt)));
  }
  if (ids.empty()) refuse_field(path, "must not be empty");
  return ids;
}

}  // namespace

Generation read_completion(const std::string& body, const std::string& request_id,
                           const Services& services) {
  const Json json = parse_json(body);
  const Fields fields(json, "");
  fields.string("model");
  refuse_unless_neutral(fields, {"echo", "suffix", "tools", "response_format"});
  GenerationFields options =
      read_generation_fields(fields, services.config.default_sampling, services.frontend);
  if (const auto top = fields.integer("logprobs", 0, wire::kMaxTopLogprobs))
    options.n_top_logprobs = static_cast<int32_t>(*top);
  ChatRequest form;
  read_grammar_fields(fields, form);
  std::vector<int32_t> ids = read_prompt(fields, options.max_tokens, services);

  OpenAiStyle style{request_id, services.config.model_name, options.include_usage,
                    options.n_top_logprobs >= 0};
  Generation result = make_generation(std::move(ids), std::move(options),
                                      completion_shape(std::move(style)), services);
  if (!form.grammar.empty()) result.submit.grammar = "root ::= content-root\n" + form.grammar;
  result.grammar_path = form.grammar_path;
  return result;
}

}  // namespace strata::server
