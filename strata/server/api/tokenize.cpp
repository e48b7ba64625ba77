#include "strata/server/api/tokenize.h"

#include <nlohmann/json.hpp>

#include "strata/server/api/token_ids.h"
#include "strata/server/fields.h"
#include "strata/server/json.h"
#include "strata/server/request_error.h"
#include "strata/text/utf8_stream.h"

namespace strata::server {

std::string tokenize(const std::string& body, const Services& services) {
  const Json json = parse_json(body);
  const Fields fields(json, "");
  const auto content = fields.string("content");
  if (!content) refuse_field("content", "is missing");
  const bool special = fields.boolean("parse_special").value_or(false);
  std::vector<int32_t> ids = services.frontend.encode(*content, special);
  if (fields.boolean("add_special").value_or(false)) {
    const std::vector<int32_t> front = services.frontend.encode_prompt("");
    ids.insert(ids.begin(), front.begin(), front.end());
  }
  const size_t count = ids.size();
  return dump({{"tokens", std::move(ids)}, {"count", count}});
}

std::string detokenize(const std::string& body, const Services& services) {
  const Json json = parse_json(body);
  const Fields fields(json, "");
  const Json* tokens = fields.array("tokens", services.config.max_body_bytes);
  if (tokens == nullptr) refuse_field("tokens", "is missing");
  text::Utf8Stream stream;
  std::string content =
      stream.append(services.frontend.decode(read_token_ids(*tokens, "tokens", services.frontend)));
  content += stream.finish();
  return dump({{"content", std::move(content)}});
}

}  // namespace strata::server
