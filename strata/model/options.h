#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strata/kernels/ops/attention.h"
#include "strata/kernels/ops/rows.h"
#include "strata/memory/expert_homes.h"
#include "strata/memory/expert_profile.h"

namespace strata::model {

// Where routed experts lie.
struct ExpertTiers {
  // The slots of cards. A layer all of whose experts have slots on its card lies there whole and
  // nowhere else, as do the layers of a card that is not named.
  std::vector<memory::StageSlots> cards;
  // RAM for experts that are not whole with their layer, of host stages as well: those that have no
  // room there are read from storage. Nothing: all of them are in RAM.
  std::optional<Bytes> ram;
  int max_swaps = 4;         // experts that may move to a card between two steps
  double swap_margin = 1.2;  // see memory::CardSlots
  std::shared_ptr<const memory::ExpertProfile> profile;  // owned by all who run the model, or null
};

// How a model is to run; resolved values, no "auto".
struct ModelOptions {
  int64_t max_context = 0;  // tokens a slot can hold, prompt and answer together
  int slots = 1;
  int chunk = 512;  // rows of a step
  int max_out = 1;  // rows of a step whose logits are wanted
  int window = 16;  // rows of which a part can be committed
  kernels::CacheType cache = kernels::CacheType::kF16;
  // Of the matrices for products; without a tile form they stay as the file has them.
  kernels::Packing packing = kernels::Packing::kGguf;
  // The planner adds the lines of routed experts itself; a model laid out like this is for planning
  // and cannot be loaded.
  bool experts_apart = false;
  ExpertTiers experts;
  bool draft = false;                         // load the draft layer, if the file has one
  std::optional<bool> draft_norm_per_stream;  // overrides the file
  double yarn_factor = 0;                     // above 0: overrides the file; 1 = off
  int64_t yarn_context = 0;
};

// What can be laid out at all: indexes are 32 bits wide.
// Errors: kInvalidArgument naming the option.
void require_sizes(const ModelOptions& options);

// How far positions reach: the context of the training, and what stretches it.
struct ContextRange {
  int64_t trained = 0;
  double yarn_factor = 1;    // 1: not stretched
  int64_t yarn_context = 0;  // what the factor counts from

  // The tokens that the scaling is made for.
  int64_t scaled() const;
};

// The file's range with the scaling of the options, where they have one. Errors: kInvalidArgument
// for a factor that is none, or if max_context is beyond the range and nothing stretches it; it
// then says what would. model: its name, for that.
ContextRange resolve_context(const ModelOptions& options, const ContextRange& of_file,
                             const std::string& model);

}  // namespace strata::model
