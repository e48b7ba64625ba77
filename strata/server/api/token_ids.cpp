#include "strata/server/api/token_ids.h"

#include <nlohmann/json.hpp>

#include "strata/base/format.h"
#include "strata/server/fields.h"
#include "strata/server/request_error.h"

namespace strata::server {

std::vector<int32_t> read_token_ids(const Json& list, const std::string& path,
                                    const Frontend& frontend) {
  std::vector<int32_t> ids;
  ids.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const Json& value = list[i];
    if (!value.is_number_integer())
      refuse_field(format("{}[{}]", path, i), format("must be a token id, not {}", kind_of(value)));
    const bool fits = value.is_number_unsigned() && value.get<uint64_t>() <= INT32_MAX;
    if (!fits || !frontend.contains(value.get<int32_t>()))
      refuse_field(format("{}[{}]", path, i), "no token has this id");
    ids.push_back(value.get<int32_t>());
  }
  return ids;
}

}  // namespace strata::server
