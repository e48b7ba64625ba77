#pragma once

#include <optional>
#include <string>

#include "strata/base/ids.h"
#include "strata/memory/machine.h"

namespace strata::memory {

// What a person says about the memory of cards.
struct CardWishes {
  std::optional<Bytes> reserve_first, reserve_later;  // kept free on the first card, on the others
  std::optional<Bytes> limit;  // of each card, as if it had no more than this in all
};

// What may be used, and how it came to be.
struct Budget {
  Bytes bytes = 0;
  Bytes reserve = 0;
  std::string why;  // "12.00 GiB less 600 MiB of others less 1.00 GiB kept free for a display"
};

// The least of what is free, what the system allows and the limit, less the reserve. A card that
// shows a screen keeps more: when its memory is full the desktop stutters or dies.
Budget card_budget(const Card& card, bool first, const CardWishes& wishes);

// Host memory: what others need beside this process, the pages of files that are looked up, and
// what this process needs beside its plan.
Bytes host_reserve(Bytes total);
Budget host_budget(const Machine& machine, std::optional<Bytes> reserve);

}  // namespace strata::memory
