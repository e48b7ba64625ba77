#pragma once

#include "strata/engine/draft/source.h"

namespace strata::engine {

// What the form of an answer leaves no choice about: guesses that are always right, so that such
// tokens need no pass of their own.
class ForcedSource final : public DraftSource {
 public:
  void draft(std::span<DraftJob> jobs) override;
  bool costs() const override { return false; }
};

}  // namespace strata::engine
