#include "strata/server/sampling_fields.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "strata/base/format.h"
#include "strata/server/request_error.h"

namespace strata::server {
namespace {

void set(std::optional<double> value, float& to) {
  if (value) to = static_cast<float>(*value);
}

std::optional<uint64_t> read_seed(const Fields& body) {
  const Json* value = body.find("seed");
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_unsigned())
    refuse_field(
        body.path("seed"),
        format("must be an integer from 0 to 18446744073709551615, not {}", kind_of(*value)));
  return value->get<uint64_t>();
}

std::vector<wire::LogitBias> read_logit_bias(const Fields& body, const Frontend& frontend) {
  const Json* map = body.object("logit_bias");
  if (map == nullptr) return {};
  if (map->size() > kMaxLogitBias)
    refuse_field(body.path("logit_bias"),
                 format("has {} members, at most {} are taken", map->size(), kMaxLogitBias));
  const Fields fields(*map, body.path("logit_bias"));
  std::vector<wire::LogitBias> result;
  for (const auto& [key, unused] : map->items()) {
    int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    // "007" and "7" would be one token under two names.
    if (error != std::errc() || end != key.data() + key.size() || std::to_string(id) != key)
      refuse_field(fields.path(key), "the name must be a token id");
    if (!frontend.contains(id)) refuse_field(fields.path(key), "no token has this id");
    const auto bias = fields.number(key, -100, 100);
    if (bias) result.push_back({id, static_cast<float>(*bias)});
  }
  return result;
}

void add_stop(const Json& value, const std::string& path, std::vector<std::string>& stops) {
  if (!value.is_string()) refuse_field(path, format("must be a string, not {}", kind_of(value)));
  std::string stop = value.get<std::string>();
  if (stop.empty()) refuse_field(path, "must not be empty");
  if (stop.size() > kMaxStopBytes)
    refuse_field(path, format("has {} bytes, at most {} are taken", stop.size(), kMaxStopBytes));
  if (std::ranges::find(stops, stop) == stops.end()) stops.push_back(std::move(stop));
}

std::vector<std::string> read_stops(const Fields& body, const char* name) {
  std::vector<std::string> stops;
  const Json* value = name == nullptr ? nullptr : body.find(name);
  if (value == nullptr) return stops;
  if (!value->is_array()) {
    if (!value->is_string())
      refuse_field(body.path(name),
                   format("must be a string or a list of strings, not {}", kind_of(*value)));
    add_stop(*value, body.path(name), stops);
    return stops;
  }
  const Json& list = *body.array(name, kMaxStops);
  for (size_t i = 0; i < list.size(); ++i)
    add_stop(list[i], format("{}[{}]", body.path(name), i), stops);
  return stops;
}

void read_stream_options(const Fields& body, GenerationFields& result) {
  const Json* options = body.object("stream_options");
  if (options == nullptr) return;
  const Fields fields(*options, body.path("stream_options"));
  result.include_usage = fields.boolean("include_usage").value_or(false);
  if (!result.stream) refuse_field(body.path("stream_options"), "only with \"stream\": true");
}

}  // namespace

GenerationFields read_generation_fields(const Fields& body, const wire::Sampling& defaults,
                                        const Frontend& frontend, const FieldNames& names) {
  GenerationFields result;
  wire::Sampling& sampling = result.sampling;
  sampling = defaults;
  set(body.number("temperature", 0, 100), sampling.temperature);
  if (const auto k = body.integer("top_k", 0, std::numeric_limits<int32_t>::max()))
    sampling.top_k = static_cast<int32_t>(*k);
  set(body.number("top_p", 0, 1), sampling.top_p);
  // No candidate at all is not what anyone can mean by 0.
  if (sampling.top_p <= 0) refuse_field(body.path("top_p"), "must be above 0");
  set(body.number("min_p", 0, 1), sampling.min_p);
  set(body.number("presence_penalty", -2, 2), sampling.presence_penalty);
  set(body.number("frequency_penalty", -2, 2), sampling.frequency_penalty);
  set(body.number("repetition_penalty", wire::kMinRepetitionPenalty, wire::kMaxRepetitionPenalty),
      sampling.repetition_penalty);
  if (const auto seed = read_seed(body)) sampling.seed = seed;
  sampling.logit_bias = read_logit_bias(body, frontend);

  result.stops = read_stops(body, names.stop);
  for (const char* name : {names.max_tokens, names.also_max_tokens}) {
    if (name == nullptr) continue;
    const auto n = body.integer(name, 1, std::numeric_limits<int32_t>::max());
    if (n)
      result.max_tokens = static_cast<int32_t>(
          std::min<int64_t>(*n, result.max_tokens.value_or(std::numeric_limits<int32_t>::max())));
  }
  result.stream = body.boolean("stream").value_or(false);
  read_stream_options(body, result);

  result.n = static_cast<int>(body.integer("n", 1, names.has_n ? kMaxAnswers : 1).value_or(1));
  if (const auto best_of = body.integer("best_of", 1, 128); best_of.value_or(1) != 1)
    unsupported_field(body.path("best_of"), "is not supported, but for 1");
  return result;
}

void refuse_unless_neutral(const Fields& body, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const Json* value = body.find(name);
    if (value == nullptr) continue;
    const bool neutral = value->is_boolean()  ? !value->get<bool>()
                         : value->is_string() ? value->get_ref<const std::string&>().empty()
                                              : value->is_structured() && value->empty();
    if (neutral) continue;
    unsupported_field(body.path(name), "is not supported");
  }
}

}  // namespace strata::server
