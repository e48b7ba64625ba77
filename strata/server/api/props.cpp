#include "strata/server/api/props.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "strata/server/api/chat.h"
#include "strata/server/fields.h"
#include "strata/server/json.h"

namespace strata::server {
namespace {

Response json_ok(const Json& body) {
  return {200, {{"Content-Type", "application/json"}}, dump(body)};
}

const char* name(text::CallFormat format) {
  switch (format) {
    case text::CallFormat::kXml:
      return "xml";
    case text::CallFormat::kJson:
      return "json";
    case text::CallFormat::kNone:
      break;
  }
  return "none";
}

// "prompt+decode" as a list.
Json phases_json(const std::string& text) {
  Json phases = Json::array();
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('+', at), text.size());
    phases.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return phases;
}

Json device_json(const wire::PlanDevice& device) {
  Json lines = Json::array();
  for (const wire::PlanLine& line : device.lines) {
    lines.push_back({{"owner", line.owner},
                     {"name", line.name},
                     {"bytes", line.bytes},
                     {"phases", phases_json(line.phases)},
                     {"formula", line.formula}});
    if (line.mapped) lines.back()["mapped"] = true;
  }
  return {{"name", device.name},
          {"budget_bytes", device.budget},
          {"reserve_bytes", device.reserve},
          {"peak_bytes", device.peak},
          {"used_bytes", device.used},
          {"expert_slots", device.n_expert_slots},
          {"lines", std::move(lines)}};
}

// The form of `strata plan --json`, as far as a running engine knows it.
Json memory_json(const supervise::Status& status) {
  if (!status.memory || status.memory->devices.empty()) return nullptr;
  const std::vector<wire::PlanDevice>& devices = status.memory->devices;
  Json ram = device_json(devices.front()), cards = Json::array();
  ram.erase("expert_slots");
  for (size_t i = 1; i < devices.size(); ++i) cards.push_back(device_json(devices[i]));
  return {{"cards", std::move(cards)},
          {"ram", std::move(ram)},
          {"storage", {{"bytes", status.memory->storage}}}};
}

}  // namespace

Response props(const Services& services) {
  const supervise::Status status = services.engine.status();
  const wire::Sampling& s = services.config.default_sampling;
  const Frontend& frontend = services.frontend;
  const Json defaults = {{"temperature", s.temperature},
                         {"top_k", s.top_k},
                         {"top_p", s.top_p},
                         {"min_p", s.min_p},
                         {"presence_penalty", s.presence_penalty},
                         {"frequency_penalty", s.frequency_penalty},
                         {"repetition_penalty", s.repetition_penalty}};
  return json_ok({{"model", services.config.model_name},
                  {"version", services.config.version},
                  {"context_length", status.limits.n_context},
                  {"slots", status.limits.n_slots},
                  {"vocabulary", status.limits.n_vocab},
                  {"max_queue", services.config.max_queue},
                  {"chat_template",
                   {{"tools", frontend.call_format() != text::CallFormat::kNone},
                    {"call_format", name(frontend.call_format())},
                    {"enable_thinking", frontend.mentions("enable_thinking")},
                    {"reasoning_effort", frontend.mentions("reasoning_effort")}}},
                  {"modalities", {{"text", true}, {"vision", false}, {"audio", false}}},
                  {"default_generation_settings", defaults},
                  {"memory_plan", memory_json(status)}});
}

Response slots(const Services& services) {
  const auto now = std::chrono::steady_clock::now();
  Json running = Json::array(), waiting = Json::array();
  for (const auto& [key, row] : services.running) {
    const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(now - row.since);
    const char* state = row.answer_tokens > 0 ? "writing" : row.has_slot ? "reading" : "waiting";
    Json json = {{"state", state},
                 {"request", row.id},
                 {"path", row.path},
                 {"prompt_tokens", row.prompt_tokens},
                 {"read_tokens", row.read_tokens},
                 {"cached_tokens", row.cached_tokens},
                 {"answer_tokens", row.answer_tokens},
                 {"running_ms", age.count()}};
    (row.has_slot ? running : waiting).push_back(std::move(json));
  }
  const auto n_slots = static_cast<size_t>(services.engine.status().limits.n_slots);
  while (running.size() < n_slots) running.push_back({{"state", "idle"}});
  for (size_t i = 0; i < running.size(); ++i) running[i]["id"] = i;
  return json_ok({{"slots", std::move(running)}, {"waiting", std::move(waiting)}});
}

std::string apply_template(const std::string& body, const Services& services) {
  const Json json = parse_json(body);
  const ChatRequest request = read_chat_request(Fields(json, ""), services);
  const Prompt prompt = render_chat(request, services);
  return dump({{"prompt", services.frontend.chat_text(chat_prompt(request))},
               {"tokens", prompt.ids.size()}});
}

}  // namespace strata::server
