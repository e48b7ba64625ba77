#include "strata/cli/machine_file.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/cli/arguments.h"

namespace strata::cli {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxCards = 64;
constexpr double kMaxMib = 1 << 30;  // a pebibyte

// An object of the file; the place is for messages: "cards[0]".
class Section {
 public:
  Section(const Json& json, std::string place, std::initializer_list<std::string_view> keys)
      : json_(json), place_(std::move(place)) {
    if (!json.is_object()) fail(format("{} is no object", place_.empty() ? "it" : place_));
    for (const auto& [key, value] : json.items()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
        fail(format("{} is not known", path(key)));
      }
    }
  }

  [[noreturn]] static void fail(const std::string& text) {
    throw Error(ErrorCode::kInvalidArgument, text);
  }
  std::string path(std::string_view key) const {
    return place_.empty() ? format("\"{}\"", key) : format("{}: \"{}\"", place_, key);
  }
  const Json* find(const char* key) const {
    const auto it = json_.find(key);
    return it == json_.end() || it->is_null() ? nullptr : &*it;
  }

  double number(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return 0;
    if (!value->is_number()) fail(format("{} is no number", path(key)));
    return value->get<double>();
  }
  Bytes mib(const char* key, bool wanted) const {
    if (wanted && find(key) == nullptr) fail(format("{} is missing", path(key)));
    const double n = number(key);
    if (!(n >= 0 && n <= kMaxMib) || (wanted && n < 1)) {
      fail(format("{} is {}, not between {} and {}", path(key), n, wanted ? 1 : 0, kMaxMib));
    }
    return static_cast<Bytes>(n * (1 << 20));
  }
  // 1 GB/s is 1e9 bytes a second. What cannot be a rate is judged by drop_absurd_rates.
  double rate(const char* key) const { return number(key) * 1e9; }
  bool flag(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) fail(format("{} is neither true nor false", path(key)));
    return value->get<bool>();
  }
  std::vector<std::string> texts(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return {};
    const bool strings = value->is_array() &&
                         std::ranges::all_of(*value, [](const Json& e) { return e.is_string(); });
    if (!strings) fail(format("{} is no list of strings", path(key)));
    return value->get<std::vector<std::string>>();
  }
  std::string text(const char* key, std::string otherwise) const {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_string()) fail(format("{} is no string", path(key)));
    return value->get<std::string>();
  }

 private:
  const Json& json_;
  std::string place_;
};

memory::Card parse_card(const Json& json, size_t i) {
  const Section card(
      json, format("cards[{}]", i),
      {"name", "vram_mib", "used_by_others_mib", "os_budget_mib", "display", "link_gbps",
       "vram_gbps", "graph_node_kib", "launch_us", "copy_us", "faults"});
  const auto positive = [&](const char* key, double otherwise, double most) {
    const double n = card.find(key) == nullptr ? otherwise : card.number(key);
    if (!(n >= 0 && n <= most)) {
      Section::fail(format("{} is {}, not between 0 and {}", card.path(key), n, most));
    }
    return n;
  };
  constexpr double kMostUs = 1e9;
  return {
      .name = card.text("name", format("card{}", i)),
      .total = card.mib("vram_mib", true),
      .used_by_others = card.mib("used_by_others_mib", false),
      .os_budget = card.mib("os_budget_mib", false),
      .display = card.flag("display"),
      .link_rate = card.rate("link_gbps"),
      .memory_rate = card.rate("vram_gbps"),
      .graph_node_bytes = static_cast<Bytes>(positive("graph_node_kib", 1, kMaxMib) * (1 << 10)),
      .launch_us = positive("launch_us", 0, kMostUs),
      .copy_us = positive("copy_us", 0, kMostUs),
      .faults = card.texts("faults")};
}

}  // namespace

memory::Machine parse_machine(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) Section::fail("it is no JSON");
  const Section top(json, "",
                    {"name", "cards", "peer_access", "ram_mib", "ram_used_by_others_mib",
                     "ram_gbps", "storage_gbps", "pinning"});
  memory::Machine machine{.name = top.text("name", "a machine"),
                          .peer_access = top.flag("peer_access"),
                          .ram = top.mib("ram_mib", true),
                          .ram_used_by_others = top.mib("ram_used_by_others_mib", false),
                          .ram_rate = top.rate("ram_gbps"),
                          .storage_rate = top.rate("storage_gbps")};
  if (const Json* pinning = top.find("pinning")) {
    const Section pins(*pinning, "pinning", {"mapped", "pageable_registration", "limit_mib"});
    machine.pins_mapped = pins.flag("mapped");
    machine.pins_pageable = pins.flag("pageable_registration");
    machine.pinned_limit = pins.mib("limit_mib", false);
  }
  if (const Json* cards = top.find("cards")) {
    if (!cards->is_array()) Section::fail("\"cards\" is no list");
    if (cards->size() > kMaxCards) {
      Section::fail(format("{} cards, at most {} are possible", cards->size(), kMaxCards));
    }
    for (size_t i = 0; i < cards->size(); ++i) machine.cards.push_back(parse_card((*cards)[i], i));
  }
  return machine;
}

std::string sim_devices(const memory::Machine& machine) {
  std::string list;
  for (const memory::Card& card : machine.cards) {
    list += format("{}sim:{}", list.empty() ? "" : ";", card.total);
    if (card.used_by_others > 0) list += format(",used={}", card.used_by_others);
    if (card.os_budget > 0) list += format(",budget={}", card.os_budget);
    if (card.display) list += ",display";
    if (card.link_rate != 0) list += format(",link={:.6f}GB/s", card.link_rate * 1e-9);
    if (card.memory_rate != 0) list += format(",vram={:.6f}GB/s", card.memory_rate * 1e-9);
    if (!machine.peer_access) list += ",peer=no";
    if (machine.pinned_limit > 0) list += format(",pin={}", machine.pinned_limit);
    list += format(",graph_node={},launch={:.6f}us,copy={:.6f}us", card.graph_node_bytes,
                   card.launch_us, card.copy_us);
    for (const std::string& rule : card.faults) list += "," + rule;
  }
  return list.empty() ? "host" : list;
}

memory::Machine read_machine(const std::string& path) {
  try {
    return parse_machine(read_text_file(path, "the machine file"));
  } catch (Error& e) {
    if (e.code() == ErrorCode::kInvalidArgument) e.with(format("machine file {}", path));
    throw;
  }
}

}  // namespace strata::cli
