#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strata/device/device.h"
#include "strata/device/sim/sim_faults.h"

namespace strata::device {

// A card that a sim poses as.
struct SimCard {
  Bytes capacity = Bytes{8} << 30;  // a card that many people have
  Bytes used_by_others = 0;
  CardFacts facts;    // rates also price the copies and launches on the sim's own clock
  bool peers = true;  // the sims of one machine copy from each other, if both say so
  std::optional<Bytes> pinned_limit;  // of host memory that can be pinned for it
  Bytes graph_node_bytes = Device::kGraphNodeBytes;
  std::chrono::nanoseconds launch_time{0}, copy_time{0};  // besides what the bytes take
  std::vector<FaultRule> rules;

  // How it is described behind "sim:SIZE" in a list of devices (registry.h), a word each:
  //   used=2GiB         memory that others have
  //   budget=7GiB       what the system lets one process have
  //   display           somebody looks at it
  //   link=12GB/s       rate from and to host memory; vram=900GB/s: of its own memory
  //   peer=no           copies from and to other cards go through the host
  //   pin=no            host memory cannot be pinned but for a ring of 256 KiB; pin=8MiB: so much
  //   graph_node=64KiB  what a node of a graph takes; launch=5us, copy=10us: what they cost
  //   a fault rule      see parse_fault_rule
  // Errors: kInvalidArgument.
  void add(std::string_view word);
};

// Whether a word of a list of devices is about the sim before it.
bool is_sim_word(std::string_view word);

// "24GiB", "512MiB", "4KiB", "4096"; not 0. Nothing: it is none of these.
std::optional<Bytes> parse_bytes(std::string_view text);

}  // namespace strata::device
