#pragma once

#include <memory>
#include <string_view>

#include "strata/model/model.h"

namespace strata::model {

// What strata knows about one architecture.
struct ArchitectureEntry {
  std::string_view name;  // general.architecture
  std::unique_ptr<Blueprint> (*read)(const gguf::Model&);
};

// Errors: kUnsupported naming the file's architecture and the known ones.
const ArchitectureEntry& find_architecture(const gguf::Model& file);

}  // namespace strata::model
