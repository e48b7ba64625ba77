#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strata/device/device.h"

namespace strata::device {

// The devices of a list like "host" or "host,sim:8GiB;sim:24GiB"; commas and semicolons are alike.
// The host comes first, named or not, so that the index is the id; the others have the backend and
// services of the options.
//   host        the CPU
//   sim         host memory posing as a card of 8 GiB; sim:SIZE of another size (24GiB, 512MiB,
//               4096). The sims of one list are cards of one machine. Words behind it say what it
//               is like and when it fails: "sim:8GiB,link=12GB/s,peer=no,hang copy #3" (SimCard).
//   cuda, hip   the first card of that runtime; cuda:1 the second, cuda:0,1 both. Cards of one list
//               copy from each other directly where the machine can.
// Errors: kInvalidArgument for a word that is none of these, kUnsupported for a kind that this
//   build does not have, or where no driver shows a card.
std::vector<std::unique_ptr<Device>> make_devices(std::string_view list,
                                                  const DeviceOptions& options);

// Of such a list, without making anything: how many cards it names, and the first with its words.
int n_cards(std::string_view list);
std::string first_card(std::string_view list);

}  // namespace strata::device
