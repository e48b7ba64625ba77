#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/os/memory.h"
#include "strata/cli/commands.h"
#include "strata/cli/local_engine.h"

namespace strata::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Rates {
  double prompt = 0, decode = 0;  // tokens per second
};

// Tokens of a prompt that no model has learned by heart, the same in every run.
wire::Submit make_request(const Settings& s, int32_t n_vocab) {
  wire::Submit submit;
  std::mt19937 random(static_cast<uint32_t>(s.seed.value_or(1)));
  for (int64_t i = 0; i < s.bench_prompt; ++i) {
    submit.ids.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(n_vocab)));
  }
  submit.sampling.temperature = 0;
  submit.max_tokens = static_cast<int32_t>(s.bench_gen);
  return submit;
}

// The first token comes with the prompt, so it is not counted as decoded.
Rates measure(LocalEngine& engine, const wire::Submit& request) {
  const LocalEngine::Answer answer = engine.ask(request, {}, {});
  Rates rates;
  rates.prompt = answer.usage.prompt_tokens * 1000.0 / answer.timings.prompt_ms;
  const int n = answer.usage.completion_tokens - 1;
  if (n > 0) rates.decode = n * 1000.0 / answer.timings.decode_ms;
  return rates;
}

double median(std::vector<Rates> rates, double Rates::*of) {
  std::sort(rates.begin(), rates.end(),
            [&](const Rates& a, const Rates& b) { return a.*of < b.*of; });
  const size_t half = rates.size() / 2;
  return rates.size() % 2 == 1 ? rates[half].*of : (rates[half - 1].*of + rates[half].*of) / 2;
}

}  // namespace

int run_bench(const Invocation& invocation) {
  os::PeakAnonMemory anon;
  Settings s = invocation.settings;
  const int64_t needed = s.bench_prompt + s.bench_gen;
  if (s.max_context == 0) s.max_context = needed;
  if (s.max_context < needed) {
    throw Error(ErrorCode::kInvalidArgument,
                format("{} tokens of prompt and {} to generate do not fit into a context of {}",
                       s.bench_prompt, s.bench_gen, s.max_context));
  }
  const auto begun = std::chrono::steady_clock::now();
  LocalEngine engine(s);
  const std::chrono::duration<double> load = std::chrono::steady_clock::now() - begun;

  const wire::Submit request = make_request(s, engine.limits().n_vocab);
  // Loading ends with one step of the full chunk; decoding has one row, and experts of its own to
  // page in.
  wire::Submit warm_up = request;
  warm_up.max_tokens = static_cast<int32_t>(std::min<int64_t>(s.bench_gen, 4));
  measure(engine, warm_up);
  std::vector<Rates> rates;
  for (int64_t i = 0; i < s.repeat; ++i) rates.push_back(measure(engine, request));

  const double prompt = median(rates, &Rates::prompt), decode = median(rates, &Rates::decode);
  const Bytes peak_rss = os::process_memory().peak_rss, peak_anon = anon.peak();
  if (s.json) {
    Json out = {{"prompt_tokens_per_s", prompt}, {"decode_tokens_per_s", nullptr},
                {"load_s", load.count()},        {"peak_rss_bytes", peak_rss},
                {"peak_anon_bytes", peak_anon},  {"prompt_tokens", s.bench_prompt},
                {"gen_tokens", s.bench_gen},     {"repeat", s.repeat}};
    if (decode > 0) out["decode_tokens_per_s"] = decode;
    for (const model::Decision& d : engine.instance().decisions()) {
      if (d.name == "threads") out["threads"] = std::stoi(d.value);
    }
    out["model"] = model_name(find_model(s));
    std::cout << out.dump() << '\n';
    return 0;
  }
  std::cout << format("prompt   {:8.1f} tokens/s  ({} tokens)\n", prompt, s.bench_prompt)
            << format("decode   {:8.1f} tokens/s  ({} tokens)\n", decode, s.bench_gen)
            << format("loading  {:8.2f} s\n", load.count())
            << format("memory   {} at most, {} of it not mapped from files\n",
                      memory::bytes_text(peak_rss), memory::bytes_text(peak_anon));
  return 0;
}

}  // namespace strata::cli
