#include "strata/device/registry.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "strata/base/format.h"
#include "strata/device/gpu/gpu_device.h"
#include "strata/device/host/host_device.h"
#include "strata/device/sim/sim_card.h"
#include "strata/device/sim/sim_device.h"

namespace strata::device {
namespace {

// What the devices of one list share.
struct Machine {
  const DeviceOptions& options;
  std::shared_ptr<SimOrder> sims;            // owned by its sims; here while the list is read
  std::vector<std::string_view> words = {};  // behind the device that is being made
};
using Make = std::unique_ptr<Device> (*)(Machine& machine, DeviceId id, std::string_view argument);

std::unique_ptr<Device> make_sim(Machine& machine, DeviceId id, std::string_view argument) {
  SimCard card;
  if (!argument.empty()) {
    const std::optional<Bytes> bytes = parse_bytes(argument);
    if (!bytes) {
      throw Error(ErrorCode::kInvalidArgument,
                  format("sim:{}: not a size such as 8GiB, 512MiB or 4096", argument));
    }
    card.capacity = *bytes;
  }
  for (const std::string_view word : machine.words) card.add(word);
  if (machine.sims == nullptr) machine.sims = make_sim_order(machine.options.seed);
  return make_sim_device(id, card, machine.sims, machine.options);
}

std::unique_ptr<Device> make_gpu(const char* api, Machine& machine, DeviceId id,
                                 std::string_view argument) {
  int ordinal = 0;
  const char* const end = argument.data() + argument.size();
  const auto [stop, error] = std::from_chars(argument.data(), end, ordinal);
  if (!argument.empty() && (error != std::errc() || stop != end)) {
    throw Error(ErrorCode::kInvalidArgument,
                format("{}:{}: not the number of a card, counted from 0", api, argument));
  }
  return make_gpu_device(api, id, ordinal, machine.options);
}
std::unique_ptr<Device> make_cuda(Machine& machine, DeviceId id, std::string_view argument) {
  return make_gpu("cuda", machine, id, argument);
}
std::unique_ptr<Device> make_hip(Machine& machine, DeviceId id, std::string_view argument) {
  return make_gpu("hip", machine, id, argument);
}

// Sorted. The host is not here: it always is there, once.
constexpr std::pair<std::string_view, Make> kKinds[] = {
    {"cuda", make_cuda},
    {"hip", make_hip},
    {"sim", make_sim},
};

std::unique_ptr<Device> make_device(Machine& machine, DeviceId id, std::string_view spec) {
  const size_t colon = spec.find(':');
  const std::string_view kind = spec.substr(0, colon);
  const auto* const found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                         [&](const auto& each) { return each.first == kind; });
  const bool empty_argument = colon != std::string_view::npos && colon + 1 == spec.size();
  if (found == std::end(kKinds) || empty_argument) {
    throw Error(
        ErrorCode::kInvalidArgument,
        format("device '{}': not one of host, sim, sim:SIZE, cuda, cuda:N, hip, hip:N", spec));
  }
  try {
    return found->second(machine, id,
                         colon == std::string_view::npos ? "" : spec.substr(colon + 1));
  } catch (Error& e) {
    e.with(format("device {}", spec));
    throw;
  }
}

// "cuda:0,1" are two cards: a number alone goes on with the kind before it. Empty: it does not.
std::string number_of(std::string_view before, std::string_view spec) {
  const std::string_view kind = before.substr(0, before.find(':'));
  const bool is_number =
      !spec.empty() && spec.find_first_not_of("0123456789") == std::string_view::npos;
  return is_number && (kind == "cuda" || kind == "hip") ? format("{}:{}", kind, spec) : "";
}

// "a,b;c": the parts between commas and semicolons.
std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find_first_of(",;", at), list.size());
    std::string_view part = list.substr(at, end - at);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    parts.push_back(part);
    at = end + 1;
  }
  return parts;
}

}  // namespace

int n_cards(std::string_view list) {
  int n = 0;
  for (const std::string_view part : parts_of(list)) n += part != "host" && !is_sim_word(part);
  return n;
}

std::string first_card(std::string_view list) {
  std::string card;
  for (const std::string_view part : parts_of(list)) {
    if (is_sim_word(part)) {
      card += format(",{}", part);
    } else if (part != "host") {
      if (!card.empty()) break;
      card = part;
    }
  }
  return card.empty() ? "host" : card;
}

std::vector<std::unique_ptr<Device>> make_devices(std::string_view list,
                                                  const DeviceOptions& options) {
  Machine machine{.options = options, .sims = nullptr};
  std::vector<std::unique_ptr<Device>> devices;
  devices.push_back(make_host_device(options));
  bool host_named = false;
  std::string_view before;
  const std::vector<std::string_view> parts = parts_of(list);
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string_view spec = parts[i];
    if (is_sim_word(spec)) {
      throw Error(ErrorCode::kInvalidArgument,
                  format("device '{}': it stands behind no sim, and only a sim can be told", spec));
    }
    if (spec == "host" && !std::exchange(host_named, true)) continue;
    machine.words.clear();
    if (spec == "sim" || spec.starts_with("sim:")) {
      while (i + 1 < parts.size() && is_sim_word(parts[i + 1])) machine.words.push_back(parts[++i]);
    }
    const std::string numbered = number_of(before, spec);
    devices.push_back(make_device(machine, DeviceId(static_cast<int32_t>(devices.size())),
                                  numbered.empty() ? spec : numbered));
    if (numbered.empty()) before = spec;
  }
  link_gpus(devices);
  return devices;
}

}  // namespace strata::device
