#include "strata/device/registry.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "strata/base/format.h"
#include "strata/device/gpu/gpu_device.h"
#include "strata/device/host/host_device.h"
#include "strata/device/sim/sim_device.h"
#include "strata/device/sim/sim_faults.h"

namespace strata::device {
namespace {

// A "sim" without a size: a card that many people have.
constexpr Bytes kUsualCard = Bytes{8} << 30;

// What the devices of one list share.
struct Machine {
  const DeviceOptions& options;
  std::shared_ptr<SimOrder> sims;  // owned by its sims; here while the list is read
};
using Make = std::unique_ptr<Device> (*)(Machine& machine, DeviceId id, std::string_view argument);

std::optional<Bytes> parse_bytes(std::string_view text) {
  constexpr std::pair<std::string_view, int> kUnits[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
  int shift = 0;
  for (const auto& [unit, bits] : kUnits) {
    if (!text.ends_with(unit)) continue;
    shift = bits;
    text.remove_suffix(unit.size());
    break;
  }
  Bytes n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  if (n == 0 || n > std::numeric_limits<Bytes>::max() >> shift) return {};
  return n << shift;
}

std::unique_ptr<Device> make_sim(Machine& machine, DeviceId id, std::string_view argument) {
  const std::optional<Bytes> bytes = argument.empty() ? kUsualCard : parse_bytes(argument);
  if (!bytes) {
    throw Error(ErrorCode::kInvalidArgument,
                format("sim:{}: not a size such as 8GiB, 512MiB or 4096", argument));
  }
  if (machine.sims == nullptr) machine.sims = make_sim_order(machine.options.seed);
  return make_sim_device(id, *bytes, machine.sims, machine.options);
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

void add_fault_rule(Device& device, std::string_view rule) {
  if (device.kind() != Kind::kSim) {
    throw Error(ErrorCode::kInvalidArgument,
                format("fail={}: only a sim fails on demand, and none stands before it", rule));
  }
  faults_of(device).add(parse_fault_rule(rule));
}

}  // namespace

std::vector<std::unique_ptr<Device>> make_devices(std::string_view list,
                                                  const DeviceOptions& options) {
  Machine machine{.options = options, .sims = nullptr};
  std::vector<std::unique_ptr<Device>> devices;
  devices.push_back(make_host_device(options));
  bool host_named = false;
  std::string_view before;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    const std::string_view spec = list.substr(at, end - at);
    at = end + 1;
    constexpr std::string_view kFail = "fail=";
    if (spec.starts_with(kFail)) {
      add_fault_rule(*devices.back(), spec.substr(kFail.size()));
      continue;
    }
    if (spec == "host" && !std::exchange(host_named, true)) continue;
    const std::string numbered = number_of(before, spec);
    devices.push_back(make_device(machine, DeviceId(static_cast<int32_t>(devices.size())),
                                  numbered.empty() ? spec : numbered));
    if (numbered.empty()) before = spec;
  }
  link_gpus(devices);
  return devices;
}

}  // namespace strata::device
