#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/os/memory.h"
#include "strata/cli/bandwidth.h"
#include "strata/cli/commands.h"
#include "strata/cli/local_engine.h"
#include "strata/engine/window.h"

namespace strata::cli {
namespace {

using Json = nlohmann::ordered_json;

// Of each, tokens per second.
struct Rates {
  std::vector<double> prompt, decode;
  wire::Drafts drafts;  // of the last answer
};

struct Report {
  double prompt = 0, decode = 0;  // tokens per second; 0: nothing was decoded
  double load_s = 0;
  Bytes peak_rss = 0, peak_anon = 0;
  Bytes read_per_token = 0;
  Bandwidth bandwidth;
  struct Window {
    double one_ms = 0, ms = 0, ratio = 0, one_experts = 0, experts = 0;
  };
  std::optional<Window> window;
  wire::Drafts drafts;  // of the last run

  // What reading the weights allows, in tokens per second; 0: unknown.
  double bound() const {
    return read_per_token > 0 ? bandwidth.bytes_per_s / static_cast<double>(read_per_token) : 0;
  }
  double share() const { return bound() > 0 ? decode / bound() : 0; }
};

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

uint64_t seed_of(const Settings& s) { return static_cast<uint64_t>(s.seed.value_or(1)); }

// Tokens of a prompt that no model has learned by heart, the same in every run.
wire::Submit make_request(const Settings& s, int32_t n_vocab) {
  wire::Submit submit;
  std::mt19937 random(static_cast<uint32_t>(seed_of(s)));
  for (int64_t i = 0; i < s.depth + s.bench_prompt; ++i) {
    submit.ids.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(n_vocab)));
  }
  submit.sampling.temperature = 0;
  submit.max_tokens = static_cast<int32_t>(s.bench_gen);
  return submit;
}

// The first token comes with the prompt, so it is not counted as decoded.
void measure(LocalEngine& engine, const wire::Submit& request, Rates& rates) {
  const LocalEngine::Answer answer = engine.ask(request, {}, {});
  const int n_read = answer.usage.prompt_tokens - answer.usage.cached_tokens;
  rates.prompt.push_back(n_read * 1000.0 / answer.timings.prompt_ms);
  rates.drafts = answer.drafts;
  const int n = answer.usage.completion_tokens - 1;
  if (n > 0) rates.decode.push_back(n * 1000.0 / answer.timings.decode_ms);
}

// A window stands behind the context alone, or behind as many tokens as the prompt has.
int64_t window_context(const Settings& s) { return s.depth > 0 ? s.depth : s.bench_prompt; }

Report::Window measure_window(LocalEngine& engine, const Settings& s) {
  const int rounds = static_cast<int>(std::clamp<int64_t>(s.bench_gen, 3, 16));
  const engine::WindowTimes times = engine::time_window(
      engine.instance(), window_context(s), static_cast<int>(s.window), rounds, seed_of(s));
  std::vector<double> ratios;
  for (size_t i = 0; i < times.one_ms.size(); ++i) {
    ratios.push_back(times.window_ms[i] / times.one_ms[i]);
  }
  return {.one_ms = median(times.one_ms),
          .ms = median(times.window_ms),
          .ratio = median(ratios),
          .one_experts = times.one_experts,
          .experts = times.window_experts};
}

Settings checked(Settings s) {
  const int64_t needed = std::max(s.depth + s.bench_prompt + s.bench_gen,
                                  s.window > 0 ? window_context(s) + s.window : 0);
  if (s.max_context == 0) s.max_context = needed;
  if (s.max_context < needed) {
    throw Error(ErrorCode::kInvalidArgument,
                format("a depth of {}, {} tokens of prompt, {} to generate and a window of {} do "
                       "not fit into a context of {}",
                       s.depth, s.bench_prompt, s.bench_gen, s.window, s.max_context));
  }
  if (s.prefill > 0 && s.window > s.prefill) {
    throw Error(
        ErrorCode::kInvalidArgument,
        format("--window {} is more than --prefill {} computes at once", s.window, s.prefill));
  }
  return s;
}

// A context that was not asked for follows from the options of this command, and so does the advice
// when it is too long.
LocalEngine open_engine(const Invocation& invocation, bool context_is_asked_for) {
  try {
    return LocalEngine(invocation);
  } catch (const Error& e) {
    constexpr std::string_view kOption = "--max-context";
    std::string text = e.what();
    const size_t at = text.find(kOption);
    if (context_is_asked_for || at == std::string::npos) throw;
    throw Error(e.code(), text.replace(at, kOption.size(), "--depth + --prompt + --gen"),
                e.where());
  }
}

Report measure_all(const Invocation& invocation, bool context_is_asked_for,
                   os::PeakAnonMemory& anon, Json& facts) {
  const Settings& s = invocation.settings;
  Report report;
  const auto begun = std::chrono::steady_clock::now();
  LocalEngine engine = open_engine(invocation, context_is_asked_for);
  const std::chrono::duration<double> load = std::chrono::steady_clock::now() - begun;
  report.load_s = load.count();
  engine.make_up_contexts(s.depth, seed_of(s));

  const wire::Submit request = make_request(s, engine.limits().n_vocab);
  // Loading ends with one step of the full chunk; decoding has one row, and experts of its own to
  // page in.
  wire::Submit warm_up = request;
  warm_up.max_tokens = static_cast<int32_t>(std::min<int64_t>(s.bench_gen, 4));
  Rates ignored, rates;
  measure(engine, warm_up, ignored);
  for (int64_t i = 0; i < s.repeat; ++i) measure(engine, request, rates);
  report.prompt = median(rates.prompt);
  report.decode = median(rates.decode);
  report.drafts = rates.drafts;
  if (s.window > 0) report.window = measure_window(engine, s);

  // Before the memory that the bandwidth is measured with, which is not the model's.
  report.peak_rss = os::process_memory().peak_rss;
  report.peak_anon = anon.peak();
  report.read_per_token = engine.instance().model().info().bytes_per_token;
  if (!s.no_bandwidth) report.bandwidth = measure_bandwidth(engine.instance().pool());

  for (const memory::Decision& d : engine.instance().decisions()) {
    if (d.name == "threads") facts["threads"] = std::stoi(d.value);
  }
  facts["model"] = model_name(find_model(s));
  return report;
}

Json or_null(double value) { return value > 0 ? Json(value) : Json(nullptr); }

Json to_json(const Report& r, const Settings& s, const Json& facts) {
  Json out = {{"prompt_tokens_per_s", r.prompt},
              {"decode_tokens_per_s", or_null(r.decode)},
              {"load_s", r.load_s},
              {"peak_rss_bytes", r.peak_rss},
              {"peak_anon_bytes", r.peak_anon},
              {"prompt_tokens", s.bench_prompt},
              {"gen_tokens", s.bench_gen},
              {"depth_tokens", s.depth},
              {"repeat", s.repeat},
              {"read_bytes_per_token", r.read_per_token},
              {"bandwidth_bytes_per_s", or_null(r.bandwidth.bytes_per_s)},
              {"decode_bound_tokens_per_s", or_null(r.bound())},
              {"decode_share", or_null(r.share())}};
  if (r.window) {
    out["window_rows"] = s.window;
    out["window_ratio"] = r.window->ratio;
    out["window_ms"] = r.window->ms;
    out["window_one_row_ms"] = r.window->one_ms;
    out["window_experts_per_layer"] = r.window->experts;
  }
  if (!r.drafts.guessed.empty()) {
    out["draft_passes"] = r.drafts.passes;
    out["draft_guessed"] = r.drafts.guessed;
    out["draft_right"] = r.drafts.right;
  }
  out.update(facts);
  return out;
}

std::string to_text(const Report& r, const Settings& s) {
  const std::string depth = s.depth > 0 ? format(" after {}", s.depth) : "";
  std::string text =
      format("prompt   {:8.1f} tokens/s  ({} tokens{})\n", r.prompt, s.bench_prompt, depth) +
      format("decode   {:8.1f} tokens/s  ({} tokens)", r.decode, s.bench_gen);
  if (r.share() > 0) {
    text += format(", {:.0f} % of the {:.1f} that reading {:.2f} GB a token at {:.1f} GB/s allows",
                   r.share() * 100, r.bound(), static_cast<double>(r.read_per_token) / 1e9,
                   r.bandwidth.bytes_per_s / 1e9);
  }
  text += '\n';
  if (r.window) {
    text += format(
        "window   {:8.2f} times one row, for {} rows ({:.1f} against {:.1f} ms; {:.1f} "
        "experts a layer against {:.1f})\n",
        r.window->ratio, s.window, r.window->ms, r.window->one_ms, r.window->experts,
        r.window->one_experts);
  }
  const std::string drafts = drafts_text(r.drafts);
  if (!drafts.empty()) text += format("guesses  {}\n", drafts);
  text += format("loading  {:8.2f} s\n", r.load_s);
  text += format("memory   {} at most, {} of it not mapped from files\n",
                 memory::bytes_text(r.peak_rss), memory::bytes_text(r.peak_anon));
  return text;
}

}  // namespace

int run_bench(const Invocation& invocation) {
  os::PeakAnonMemory anon;
  Invocation resolved = invocation;
  const Settings& s = resolved.settings = checked(invocation.settings);
  Json facts;
  const bool context_is_asked_for = invocation.settings.max_context > 0;
  const Report report = measure_all(resolved, context_is_asked_for, anon, facts);
  if (!s.no_bandwidth && report.bandwidth.bytes_per_s == 0) {
    warn("too little memory is free to measure how fast it can be read");
  }
  if (s.json) {
    std::cout << to_json(report, s, facts).dump() << '\n';
  } else {
    std::cout << to_text(report, s);
  }
  return 0;
}

}  // namespace strata::cli
