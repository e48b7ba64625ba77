#include "strata/cli/plan_report.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "strata/base/format.h"

namespace strata::cli {
namespace {

using memory::DeviceUse;
using memory::Line;
using memory::Solution;
using Json = nlohmann::ordered_json;

constexpr std::array<memory::Phase, 5> kPhases = {memory::kLoad, memory::kPrompt, memory::kDecode,
                                                  memory::kDraftPrompt, memory::kRestore};

std::string peaks_text(const Solution& s, DeviceId where) {
  std::string text;
  for (const memory::Phase phase : kPhases) {
    text += format("{}{} {}", text.empty() ? "" : ", ", memory::phases_text(phase),
                   memory::bytes_text(s.plan.peak(where, phase)));
  }
  return text;
}

std::string device_text(const Solution& s, const DeviceUse& use) {
  std::string text = format("{}: {} of {} planned, {} kept free ({})\n", use.name,
                            memory::bytes_text(use.peak), memory::bytes_text(use.budget.bytes),
                            memory::bytes_text(use.budget.reserve), use.budget.why);
  size_t owner = 5, name = 4, when = 4;
  for (const Line& line : s.plan.lines()) {
    if (line.where != use.where) continue;
    owner = std::max(owner, line.owner.size());
    name = std::max(name, line.name.size());
    when = std::max(when, memory::phases_text(line.phases).size());
  }
  bool any = false;
  for (const Line& line : s.plan.lines()) {
    if (line.where != use.where) continue;
    text += format("  {:<{}}  {:<{}}  {:>11}  {:<{}}  {}{}\n", line.owner, owner, line.name, name,
                   memory::bytes_text(line.bytes), memory::phases_text(line.phases), when,
                   line.formula, line.mapped ? " (mapped: not counted)" : "");
    any = true;
  }
  text += any ? format("  peak by phase: {}\n", peaks_text(s, use.where)) : "  nothing\n";
  if (use.missing() > 0) {
    text += format("  {} MORE THAN THERE IS\n", memory::bytes_text(use.missing()));
  }
  return text + "\n";
}

std::string name_of(const Solution& s, DeviceId where) {
  return where.value == 0 ? std::string("the processor")
                          : s.devices[static_cast<size_t>(where.value)].name;
}

std::string places_text(const Solution& s, const PlanSubject& subject) {
  std::string text = "What is where\n";
  for (const memory::Stage& stage : s.placement.stages) {
    text += format("  layers {} to {}: {}\n", stage.first_layer, stage.end_layer - 1,
                   name_of(s, stage.where));
  }
  text += format("  head: {}; draft layer: {}\n", name_of(s, s.placement.head),
                 s.placement.drafts() ? name_of(s, s.placement.draft) : "off");
  for (const memory::StageSlots& slots : s.homes.stages) {
    if (slots.n() == 0) continue;
    const auto [least, most] = std::ranges::minmax(slots.slots);
    text += format("  experts on {}: {} slots, {} of {} a layer\n", name_of(s, slots.where),
                   slots.n(), least == most ? format("{}", most) : format("{} or {}", least, most),
                   subject.n_experts);
  }
  if (s.storage.n_blobs > 0) {
    text += format("  experts that stay in storage: {}, {}\n", s.storage.n_blobs,
                   memory::bytes_text(s.storage.bytes));
  }
  return text + "\n";
}

std::string speed_text(double tokens_per_s) {
  return tokens_per_s > 0
             ? format("{:.1f} tokens/s", tokens_per_s)
             : "unknown (the machine's rates are not all known: ram, cards, link, storage)";
}

std::string expected_text(const Solution& s) {
  const memory::Expectation& e = s.expected;
  std::string text = "Expected, one answer at a time, from the rates; not measured\n";
  if (!s.homes.stages.empty()) {
    text += format("  {:.0f} % of expert reads find a slot on a card ({})\n", 100 * e.hit_rate,
                   e.basis);
  }
  if (e.storage_rate > 0) {
    text += format("  {:.1f} % go to storage ({})\n", 100 * e.storage_rate, e.basis);
  }
  return text + format("  prompt {}, decode {}\n\n", speed_text(e.prompt_tokens_per_s),
                       speed_text(e.decode_tokens_per_s));
}

Json lines_json(const Solution& s, DeviceId where) {
  Json lines = Json::array();
  for (const Line& line : s.plan.lines()) {
    if (line.where != where) continue;
    Json phases = Json::array();
    for (const memory::Phase phase : kPhases) {
      if ((line.phases & phase) != 0) phases.push_back(memory::phases_text(phase));
    }
    if (phases.empty()) phases.push_back("always");
    lines.push_back({{"owner", line.owner},
                     {"name", line.name},
                     {"bytes", line.bytes},
                     {"phases", phases},
                     {"formula", line.formula}});
    if (line.mapped) lines.back()["mapped"] = true;
  }
  return lines;
}

Json device_json(const Solution& s, const DeviceUse& use) {
  Json device = {{"name", use.name},
                 {"budget_bytes", use.budget.bytes},
                 {"reserve_bytes", use.budget.reserve},
                 {"peak_bytes", use.peak}};
  if (use.where.value > 0) device["expert_slots"] = use.expert_slots;
  device["lines"] = lines_json(s, use.where);
  return device;
}

}  // namespace

std::string plan_text(const Solution& s, const PlanSubject& subject) {
  std::string text = format("{}\n{}\n\n", subject.model, subject.machine);
  for (size_t i = 1; i < s.devices.size(); ++i) text += device_text(s, s.devices[i]);
  text += device_text(s, s.devices[0]);
  if (s.fits) text += places_text(s, subject) + expected_text(s);
  text += "Decided\n";
  for (const memory::Decision& d : s.decisions) {
    text += format("  {}{} = {}: {}\n", d.warning ? "WARNING " : "", d.name, d.value, d.why);
  }
  return text;
}

std::string plan_json(const Solution& s, const PlanSubject& subject) {
  Json cards = Json::array();
  for (size_t i = 1; i < s.devices.size(); ++i) cards.push_back(device_json(s, s.devices[i]));
  Json stages = Json::array();
  for (const memory::Stage& stage : s.placement.stages) {
    stages.push_back({{"device", stage.where.value},
                      {"first_layer", stage.first_layer},
                      {"end_layer", stage.end_layer}});
  }
  Json decisions = Json::array();
  for (const memory::Decision& d : s.decisions) {
    decisions.push_back(
        {{"name", d.name}, {"value", d.value}, {"why", d.why}, {"warning", d.warning}});
  }
  const auto speed = [](double x) { return x > 0 ? Json(x) : Json(nullptr); };
  Json json = {{"fits", s.fits},
               {"model", subject.model},
               {"machine", subject.machine},
               {"max_context", s.placement.max_context},
               {"prefill", s.placement.chunk},
               {"stages", stages},
               {"head", s.placement.head.value},
               {"draft", s.placement.drafts() ? Json(s.placement.draft.value) : Json(nullptr)},
               {"cards", cards},
               {"ram", device_json(s, s.devices[0])},
               {"storage", {{"experts", s.storage.n_blobs}, {"bytes", s.storage.bytes}}},
               {"expected",
                {{"hit_rate", s.expected.hit_rate},
                 {"storage_rate", s.expected.storage_rate},
                 {"basis", s.expected.basis},
                 {"prompt_tokens_per_s", speed(s.expected.prompt_tokens_per_s)},
                 {"decode_tokens_per_s", speed(s.expected.decode_tokens_per_s)}}},
               {"decisions", decisions}};
  if (!s.fits) json["refusal"] = s.refusal;
  return json.dump(1) + "\n";
}

}  // namespace strata::cli
