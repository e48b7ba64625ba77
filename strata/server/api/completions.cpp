#include "strata/server/api/completions.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "strata/base/format.h"
#include "strata/server/api/token_ids.h"
#include "strata/server/fields.h"
#include "strata/server/json.h"
#include "strata/server/request_error.h"
#include "strata/server/sampling_fields.h"
#include "strata/server/usage_json.h"

namespace strata::server {
namespace {

class CompletionShape final : public AnswerShape {
 public:
  CompletionShape(const std::string& request_id, std::string model)
      : id_("cmpl-" + request_id), model_(std::move(model)), created_(unix_time()) {}

  std::string opening() const override { return ""; }
  std::string piece(const text::ReasoningSplit::Part& part) const override {
    return dump(with_choice(part.content, nullptr));
  }
  std::string closing(std::string_view finish_reason) const override {
    return dump(with_choice("", finish_reason));
  }
  std::string usage(const wire::Finished& end) const override {
    Json body = head();
    body["choices"] = Json::array();
    add_end(body, end);
    return dump(body);
  }
  std::string whole(const Whole& answer) const override {
    Json body = with_choice(answer.content, answer.finish_reason);
    add_end(body, answer.end);
    return dump(body);
  }

 private:
  Json head() const {
    return {{"id", id_}, {"object", "text_completion"}, {"created", created_}, {"model", model_}};
  }
  Json with_choice(const std::string& text, Json finish_reason) const {
    Json body = head();
    body["choices"] = Json::array({{{"index", 0},
                                    {"text", text},
                                    {"logprobs", nullptr},
                                    {"finish_reason", std::move(finish_reason)}}});
    return body;
  }

  const std::string id_, model_;
  const int64_t created_;
};

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
  refuse_unless_neutral(fields, {"echo", "suffix", "logprobs", "tools"});
  GenerationFields options =
      read_generation_fields(fields, services.config.default_sampling, services.frontend);
  std::vector<int32_t> ids = read_prompt(fields, options.max_tokens, services);

  return make_generation(std::move(ids), std::move(options),
                         std::make_unique<CompletionShape>(request_id, services.config.model_name),
                         services);
}

}  // namespace strata::server
