#pragma once

#include <cstdint>
#include <string>

#include "strata/base/ids.h"

namespace strata::memory {

// When bytes are in use. A plan's peak is the largest sum over one phase, not the sum of all lines.
enum Phase : uint8_t {
  kAlways = 0,  // in every phase
  kLoad = 1,
  kPrompt = 2,
  kDecode = 4,
  kDraftPrompt = 8,  // the draft layer reads what the trunk has read
  kRestore = 16,     // a checkpoint is put back
};

// "always", "load", "prompt+decode".
std::string phases_text(uint8_t phases);

// One named stretch of memory of the plan.
struct Line {
  PlanLineId id;        // its place in the plan; set by Plan::add
  std::string owner;    // "qwen4exp"
  std::string name;     // "recurrent state"
  std::string formula;  // with the numbers filled in: "2 slots x 2 x 113246208 B"
  DeviceId where;       // 0: host memory
  Bytes bytes = 0;
  uint8_t phases = kAlways;  // a set of Phase
  // Backed by a mapped file: the system may drop and read it again, so it is not counted against
  // the budget of anonymous memory.
  bool mapped = false;
  // May be taken after the start, too: graphs are made when a step of their shape first comes.
  bool after_start = false;
};

}  // namespace strata::memory
