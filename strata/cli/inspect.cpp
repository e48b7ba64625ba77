#include <iostream>
#include <nlohmann/json.hpp>

#include "strata/cli/commands.h"
#include "strata/gguf/describe.h"

namespace strata::cli {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const gguf::Description& d) {
  Json files = Json::array(), keys = Json::array(), tensors = Json::array(), types = Json::array();
  for (const auto& f : d.files) {
    files.push_back({{"path", f.path},
                     {"bytes", f.n_bytes},
                     {"header_bytes", f.header_bytes},
                     {"version", f.version},
                     {"alignment", f.alignment},
                     {"tensors", f.n_tensors}});
  }
  for (const auto& k : d.keys) {
    keys.push_back(
        {{"key", k.key}, {"type", k.type}, {"value", k.text}, {"shortened", k.shortened}});
  }
  for (const auto& t : d.tensors) {
    tensors.push_back({{"name", t.name},
                       {"type", t.type},
                       {"shape", t.shape},
                       {"bytes", t.n_bytes},
                       {"offset", t.offset},
                       {"file", t.file}});
  }
  for (const auto& t : d.types) {
    types.push_back(
        {{"type", t.type}, {"tensors", t.n_tensors}, {"values", t.n_values}, {"bytes", t.n_bytes}});
  }
  return {{"files", files}, {"keys", keys},         {"tensors", tensors},
          {"types", types}, {"values", d.n_values}, {"bytes", d.n_bytes}};
}

}  // namespace

int run_inspect(const Invocation& invocation) {
  const gguf::Model file = gguf::Model::open(invocation.settings.model, {.header_only = true});
  const gguf::Description description = gguf::describe(file);
  if (invocation.settings.json) {
    // Paths are bytes: what is no UTF-8 in them must not stop the output.
    std::cout << to_json(description).dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  } else {
    std::cout << gguf::to_text(description);
  }
  return 0;
}

}  // namespace strata::cli
