#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strata/device/device.h"

namespace strata::device {

// The devices of a list like "host" or "host,sim:8GiB,sim:24GiB". The host comes first, named or
// not, so that the index is the id; the others have the backend and services of the options.
//   host        the CPU
//   sim         host memory posing as a card of 8 GiB; sim:SIZE of another size (24GiB, 512MiB,
//               4096). The sims of one list are cards of one machine. Words fail=RULE after it are
//               its fault rules: "sim:8GiB,fail=launch#500:device_lost" (sim/sim_faults.h).
//   cuda, hip   the first card of that runtime; cuda:1 the second, cuda:0,1 both. Cards of one list
//               copy from each other directly where the machine can.
// Errors: kInvalidArgument for a word that is none of these, kUnsupported for a kind that this
//   build does not have, or where no driver shows a card.
std::vector<std::unique_ptr<Device>> make_devices(std::string_view list,
                                                  const DeviceOptions& options);

}  // namespace strata::device
