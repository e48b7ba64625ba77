#pragma once

#include <memory>

#include "strata/model/model.h"

namespace strata::model {

// The architecture of Qwen3.8-Flash-Next and of small models of its kind: hyper-connections, Gated
// DeltaNet, block-sparse attention, experts, n-gram embedding (docs/model.md).
std::unique_ptr<Blueprint> read_qwen4exp(const gguf::Model& file);

}  // namespace strata::model
