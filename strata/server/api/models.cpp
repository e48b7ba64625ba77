#include "strata/server/api/models.h"

#include <nlohmann/json.hpp>

#include "strata/server/json.h"

namespace strata::server {

std::string list_models(const Services& services) {
  Json model = {{"id", services.config.model_name},
                {"object", "model"},
                {"created", services.started_unix},
                {"owned_by", "strata"}};
  const int n_context = services.engine.status().limits.n_context;
  if (n_context > 0) model["context_length"] = n_context;
  return dump({{"object", "list"}, {"data", Json::array({std::move(model)})}});
}

}  // namespace strata::server
