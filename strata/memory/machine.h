#pragma once

#include <string>
#include <vector>

#include "strata/base/ids.h"

namespace strata::memory {

// One graphics card. Rates are bytes a second; 0: unknown.
struct Card {
  std::string name;
  Bytes total = 0;
  Bytes used_by_others = 0;
  Bytes os_budget = 0;   // what the system lets one process have; 0: no such limit
  bool display = false;  // somebody looks at it
  double link_rate = 0;  // from host memory to the card
  double memory_rate = 0;
  Bytes graph_node_bytes = 1024;  // what a node of a graph takes
  // For a sim that poses as it; see device/sim/sim_card.h.
  double launch_us = 0, copy_us = 0;
  std::vector<std::string> faults;  // rules in words
};

// What a machine has, read off it or described in a file. Card i is device i + 1.
struct Machine {
  std::string name;
  std::vector<Card> cards;
  bool peer_access = false;  // cards copy between each other without the host
  Bytes ram = 0;
  Bytes ram_used_by_others = 0;
  double ram_rate = 0, storage_rate = 0;
  bool pins_mapped = false;    // pages of a mapped file can be made known to a card
  bool pins_pageable = false;  // memory that is there already can be
  Bytes pinned_limit = 0;      // of memory that can be pinned in all; 0: no such limit
};

// A probe that failed or met a busy moment gives nonsense: rates that are not positive, or beyond
// what any machine does, are unknown from here on. One sentence for each.
std::vector<std::string> drop_absurd_rates(Machine& machine);

}  // namespace strata::memory
