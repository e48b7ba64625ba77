#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "strata/gguf/model.h"

namespace strata::gguf::testing {

// What a copy of a model has otherwise. Values view bytes that outlive the copying.
struct Changes {
  std::set<std::string> drop_keys;
  std::map<std::string, Value> set_keys;  // changed, or added behind the others
  std::set<std::string> drop_tensors;
  // Another type or shape; the data is then zero, before it is edited.
  struct Form {
    quant::Type type;
    std::vector<int64_t> shape;  // outermost first
  };
  std::map<std::string, Form> forms;
  std::map<std::string, Form> add_tensors;  // the same
  // Sees the bytes of every tensor before they are written.
  std::function<void(std::string_view name, std::vector<std::byte>& bytes)> edit;
};

// The copy, in memory; its errors call it "changed.gguf".
Model rewritten(const Model& model, const Changes& changes);

// The same without its data, which reads as zeros: fast, for tests that look at keys and shapes.
Model rewritten_headers(const Model& model, const Changes& changes);

}  // namespace strata::gguf::testing
