#include "strata/cli/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/wire/messages.h"

namespace strata::cli {
namespace {

// Every command that opens a model.
constexpr unsigned kModel = kServe | kRun | kBench | kEval | kProfile | kEngine;
// Those of them that answer.
constexpr unsigned kAnswers = kServe | kRun | kBench | kEngine;
constexpr unsigned kSampling = kServe | kRun;
constexpr double kAny = std::numeric_limits<double>::max();
constexpr double kMaxCount = 1 << 30;

constexpr std::string_view kGroups[] = {"Model",   "Memory",    "Prompt",          "Answer",
                                        "Server",  "Measuring", "Synthetic model", "Plan",
                                        "General", "Hidden"};

constexpr CommandSpec kCommands[] = {
    {kServe, "serve", "the server with its chat page"},
    {kRun, "run", "one answer, or a chat in the terminal"},
    {kBench, "bench", "tokens per second for prompt and answer"},
    {kEval, "eval", "difference from stored reference outputs, or perplexity of a text"},
    {kPlan, "plan", "what would lie where, in bytes, on this or another machine"},
    {kProfile, "profile", "counts which experts a text needs, for --expert-profile"},
    {kInspect, "inspect", "metadata and tensors of a GGUF file", false, true},
    {kSynth, "synth", "writes a model of true geometry with random weights, to measure with", false,
     true},
    {kEngine, "engine", "the engine process of serve", true, true},
    {kOptions, "options", "the options of all commands", true},
};

// Sorted by group, within it by name.
const OptionSpec kTable[] = {
    // ---- Model
    {"batch", "auto|N", &Settings::batch, kServe | kEngine | kPlan, "Model",
     "requests that are answered at the same time; auto: 2", 1, 256},
    {"cpu-isa", "auto|avx2|avx512", &Settings::cpu_isa, kModel, "Model",
     "vector instructions to compute with; auto: the best the processor has"},
    {"device", "host|cuda[:N]|sim[:SIZE][,..]", &Settings::device, kModel, "Model",
     "where to compute; cuda is the first card, cuda:0,1 two of them; sim is host memory that "
     "poses as a card of SIZE (8GiB), for tests; words behind it say what it is like and when it "
     "fails (docs/howto/sim.md)"},
    {"kv", "auto|f16|f32|int8", &Settings::kv, kModel | kPlan, "Model",
     "type of the attention cache; auto: f16, f32 if the attention weights are f32; int8 takes "
     "about half the memory of f16"},
    {"layer-split", "auto|K1,K2..", &Settings::layer_split, kModel | kPlan, "Model",
     "layers of each card; auto: the fastest by the rates that fits"},
    {"machine", "FILE", &Settings::machine, kModel, "Model",
     "with --device sim: pose as the cards and the memory of this machine, described in JSON "
     "(docs/howto/plan.md)"},
    {"max-context", "auto|N", &Settings::max_context, kModel | kPlan, "Model",
     "tokens of prompt and answer together; auto: what the model was trained on, at most 16384", 1,
     kMaxCount},
    {"mtp", "auto|off", &Settings::mtp, kAnswers, "Model",
     "guess tokens with the model's draft (MTP) layer; auto: if the file has one"},
    {"mtp-hnorm", "auto|stream|full", &Settings::mtp_hnorm, kAnswers, "Model",
     "norm of the residual in front of the MTP layer; auto: as the file says"},
    {"prefill", "auto|N", &Settings::prefill, kModel | kPlan, "Model",
     "prompt tokens that are computed at once; auto: 512", 1, 65536},
    {"prompt-cache-dir", "DIR", &Settings::prompt_cache_dir, kServe | kRun | kEngine, "Model",
     "states of conversations are written there when nothing else is to do, and found again after "
     "a "
     "restart; at most 64 files, which hold what was said"},
    {"prompt-cache-mib", "auto|N", &Settings::prompt_cache_mib, kServe | kRun | kEngine, "Model",
     "memory for states of conversations, from which a later prompt goes on; 0: none; auto: a "
     "sixteenth of what is free, at most 2048",
     0, 1 << 24, "", "", "auto"},
    {"rope-scale", "S", &Settings::rope_scale, kModel | kPlan, "Model",
     "with --rope-scaling yarn: how many times the trained context, above 1", 1, 1024, "", "",
     "none"},
    {"rope-scaling", "auto|none|yarn", &Settings::rope_scaling, kModel | kPlan, "Model",
     "how positions beyond the trained context are made; auto: as the file says"},
    {"show-plan", "", &Settings::show_plan, kModel, "Model",
     "print what will lie where, in bytes, before the weights are read"},
    {"spec", "auto|N", &Settings::spec, kAnswers | kPlan, "Model",
     "tokens of an answer that are guessed and then verified in one step; 0: none; auto: at most "
     "8, "
     "as many as make it faster; of bench: none",
     0, 32, "", "", "auto"},
    {"spec-min-p", "P", &Settings::spec_min_p, kAnswers, "Model",
     "guessing stops in front of a token to which the MTP layer gives less probability", 0, 1},
    {"threads", "auto|N", &Settings::threads, kModel | kPlan | kSynth, "Model",
     "threads to compute with; auto: physical cores within the limits of this process", 1, 1024},
    {"weights", "auto|mapped|tiles|copied", &Settings::weights, kModel | kPlan, "Model",
     "mapped: used in the file; tiles: re-laid in memory for speed, embeddings stay in the file; "
     "copied: as tiles, nothing in the file; auto: tiles where they fit"},
    {"yarn-orig-ctx", "auto|N", &Settings::yarn_orig_ctx, kModel | kPlan, "Model",
     "with --rope-scaling yarn: the context to scale; auto: the trained one", 1, kMaxCount},
    // ---- Memory
    {"expert-cache", "auto|N", &Settings::expert_cache, kModel | kPlan, "Memory",
     "at most N experts a layer on a card; auto: as many as fit", 0, 65536, "", "", "auto"},
    {"expert-profile", "FILE", &Settings::expert_profile, kModel | kPlan, "Memory",
     "which experts are used most; a run writes to it what it has learned, profile what a text "
     "needs. Without it plan takes published values"},
    {"resident-budget-gib", "N", &Settings::resident_budget_gib, kModel | kPlan, "Memory",
     "RAM holds the hottest experts, as many as fit into N GiB; the others are read from storage "
     "as they are wanted",
     0, 65536, "", "", "none"},
    {"resident-experts", "", &Settings::resident_experts, kModel | kPlan, "Memory",
     "RAM holds what no card holds, and no copies of the rest"},
    {"vram-limit-mib", "N", &Settings::vram_limit_mib, kModel | kPlan, "Memory",
     "as if no card had more", 0, 1 << 30, "", "", "none"},
    {"vram-reserve-later-mib", "auto|N", &Settings::vram_reserve_later_mib, kModel | kPlan,
     "Memory", "kept free on every card but the first", 0, 1 << 30, "", "", "auto"},
    {"vram-reserve-mib", "auto|N", &Settings::vram_reserve_mib, kModel | kPlan, "Memory",
     "kept free on the first card; auto: an eighth, at most 1 GiB, beside a display; else a "
     "sixteenth, at most 384 MiB",
     0, 1 << 30, "", "", "auto"},
    // ---- Prompt
    {"prompt", "TEXT", &Settings::prompt, kRun, "Prompt",
     "the question; without it a chat, or what comes through a pipe", -kAny, kAny, "p"},
    {"prompt-file", "FILE", &Settings::prompt_file, kRun, "Prompt", "the question is in a file"},
    {"raw", "", &Settings::raw, kRun, "Prompt",
     "the prompt as it is, without the chat template; special tokens in it count"},
    {"system", "TEXT", &Settings::system, kRun, "Prompt", "a system message before the question"},
    {"think", "auto|on|off", &Settings::think, kRun, "Prompt",
     "let the model think first; auto: as its template does"},
    // ---- Answer
    {"frequency-penalty", "X", &Settings::frequency_penalty, kSampling, "Answer",
     "taken off a token's logit for each time it was used", -2, 2},
    {"max-tokens", "auto|N", &Settings::max_tokens, kRun, "Answer",
     "length of the answer; auto: what the context leaves", 1, kMaxCount},
    {"min-p", "P", &Settings::min_p, kSampling, "Answer",
     "drop tokens below this share of the best one's probability; 0: off", 0, 1},
    {"presence-penalty", "X", &Settings::presence_penalty, kSampling, "Answer",
     "taken off a token's logit if it was used", -2, 2},
    {"repeat-window", "N", &Settings::repeat_window, kSampling, "Answer",
     "last tokens that --repetition-penalty looks at; -1: all, 0: off", -1, kMaxCount},
    {"repetition-penalty", "X", &Settings::repetition_penalty, kSampling, "Answer",
     "divides the logits of tokens that were used; 1: off", wire::kMinRepetitionPenalty,
     wire::kMaxRepetitionPenalty},
    {"seed", "N", &Settings::seed, kSampling | kBench, "Answer",
     "the same seed gives the same answer; of bench: of its prompt", 0, kAny, "", "", "random"},
    {"temp", "T", &Settings::temp, kSampling, "Answer",
     "temperature; 0: always the likeliest token", 0, 100},
    {"top-k", "N", &Settings::top_k, kSampling, "Answer", "only the N likeliest tokens; 0: all", 0,
     kMaxCount},
    {"top-p", "P", &Settings::top_p, kSampling, "Answer",
     "only the likeliest tokens that make up this probability; 1: off", 1e-6, 1},
    // ---- Server
    {"allowed-host", "NAME", &Settings::allowed_hosts, kServe, "Server",
     "another name under which browsers may reach the server; may be repeated"},
    {"api-key", "KEY", &Settings::api_keys, kServe, "Server",
     "clients have to send it; may be repeated. Others can see a command line: better by file",
     -kAny, kAny, "", "STRATA_API_KEY"},
    {"api-key-file", "FILE", &Settings::api_key_file, kServe, "Server",
     "one key a line; # begins a comment"},
    {"cors-origin", "ORIGIN", &Settings::cors_origins, kServe, "Server",
     "web pages of this origin may use the API; * for all; may be repeated"},
    {"examples", "", &Settings::examples, kServe, "Server",
     "say what to try once the model is ready"},
    {"host", "ADDRESS", &Settings::host, kServe, "Server",
     "where to listen; other machines reach 0.0.0.0, which needs an API key"},
    {"keepalive-s", "S", &Settings::keepalive_s, kServe, "Server",
     "a stream that is silent this long gets a comment", 0.05, 3600},
    {"max-body-mib", "N", &Settings::max_body_mib, kServe, "Server", "largest request", 1, 1024},
    {"max-queue", "N", &Settings::max_queue, kServe, "Server",
     "answers that may wait for a slot; more are refused with 429", 0, 200},
    {"port", "N", &Settings::port, kServe, "Server", "0: any free one, which is printed", 0, 65535},
    {"step-limit-s", "S", &Settings::step_limit_s, kServe | kEngine, "Server",
     "a step that takes this long, and a sixtieth of it for each row, is withdrawn; an engine that "
     "does not come back from twice of it is started again",
     0.05, 86400},
    {"tls-cert", "FILE", &Settings::tls_cert, kServe, "Server",
     "certificate and its chain in PEM: with it the server speaks TLS"},
    {"tls-key", "FILE", &Settings::tls_key, kServe, "Server", "its key in PEM"},
    // ---- Measuring
    {"depth", "N", &Settings::depth, kBench, "Measuring",
     "tokens of context before the prompt; their state is made up, not computed", 0, kMaxCount},
    {"gen", "N", &Settings::bench_gen, kBench, "Measuring", "tokens to generate", 1, kMaxCount},
    {"mtp", "auto|off", &Settings::mtp, kEval, "Measuring",
     "compare the drafts of the MTP layer as well; auto: if file and reference have them"},
    {"mtp-hnorm", "auto|stream|full", &Settings::mtp_hnorm, kEval, "Measuring",
     "norm of the residual in front of the MTP layer; auto: as the file says"},
    {"no-bandwidth", "", &Settings::no_bandwidth, kBench, "Measuring",
     "do not measure how fast memory can be read"},
    {"prompt", "N", &Settings::bench_prompt, kBench, "Measuring", "tokens of the prompt", 1,
     kMaxCount},
    {"reference", "FILE", &Settings::reference, kEval, "Measuring",
     "GGUF with ids and logits to compare with"},
    {"repeat", "N", &Settings::repeat, kBench, "Measuring", "runs; the median counts", 1, 1000},
    {"text", "FILE", &Settings::text, kEval | kProfile, "Measuring",
     "of eval: a text whose perplexity is wanted; of profile: one as it will be read and written"},
    {"window", "N", &Settings::window, kBench, "Measuring",
     "time a step of N rows of one session, too, against one of a single row; 0: no", 0, 256},
    // ---- Synthetic model
    {"dense", "TYPE", &Settings::synth_dense, kSynth, "Synthetic model",
     "type of the matrices that every token reads"},
    {"down", "TYPE", &Settings::synth_down, kSynth, "Synthetic model",
     "type of the experts' down matrices, rows of 640"},
    {"emb", "TYPE", &Settings::synth_emb, kSynth, "Synthetic model",
     "type of the embedding and of the output"},
    {"experts", "N", &Settings::synth_experts, kSynth, "Synthetic model", "experts of a layer", 1,
     65536},
    {"gate", "TYPE", &Settings::synth_gate, kSynth, "Synthetic model",
     "type of the experts' gate and up matrices"},
    {"hc", "TYPE", &Settings::synth_hc, kSynth, "Synthetic model",
     "type of the hyper-connections; of rows of 320 Q8_0, if its blocks do not fit them"},
    {"header-only", "", &Settings::synth_header_only, kSynth, "Synthetic model",
     "no tensors and no vocabulary: enough for inspect and plan"},
    {"layers", "N", &Settings::synth_layers, kSynth, "Synthetic model",
     "layers; every fourth has attention", 1, 4095},
    {"mtp", "", &Settings::synth_mtp, kSynth, "Synthetic model", "a draft layer as well"},
    {"ple", "TYPE", &Settings::synth_ple, kSynth, "Synthetic model",
     "type of the n-gram table, rows of 160"},
    {"ple-base", "N", &Settings::synth_ple_base, kSynth, "Synthetic model",
     "rows of each of its 16 parts, about", 2, 100000000},
    {"seed", "N", &Settings::synth_seed, kSynth, "Synthetic model",
     "the same seed gives the same bytes", 0, kAny},
    {"top", "N", &Settings::synth_top, kSynth, "Synthetic model", "experts that a token uses", 1,
     64},
    {"vocab", "N", &Settings::synth_vocab, kSynth, "Synthetic model", "tokens", 946, 1048576},
    // ---- Plan
    {"machine", "FILE", &Settings::machine, kPlan, "Plan",
     "a machine described in JSON; without it this one"},
    {"mtp", "auto|on|off", &Settings::mtp, kPlan, "Plan",
     "the draft layer; auto: if the file has one and it fits"},
    // ---- General
    {"config", "FILE", &Settings::config, kModel | kInspect | kSynth | kPlan, "General",
     "options from a JSON file, {\"max-context\": 8192, ...}; the command line wins"},
    {"force", "", &Settings::force, kSynth | kProfile, "General", "replace a file of this name"},
    {"json", "", &Settings::json, kBench | kEval | kInspect | kPlan | kProfile, "General",
     "the result as JSON on stdout"},
    {"log-level", "auto|debug|info|warning|error|off", &Settings::log_level,
     kModel | kInspect | kSynth | kPlan, "General",
     "what goes to stderr; auto: info for serve, else warning"},
    {"progress", "", &Settings::progress, kRun | kBench | kEval | kSynth | kProfile, "General",
     "show how far loading or writing is even if stderr is no terminal"},
    {"verbose", "", &Settings::verbose, kRun | kBench | kEval | kProfile, "General",
     "as --log-level info; of run: the speed, too", -kAny, kAny, "v"},
    // ---- Hidden
    {"fd", "N", &Settings::fd, kEngine, "Hidden", "the socket to the front", 0, 65535},
    {"incarnation", "N", &Settings::incarnation, kEngine, "Hidden", "of this engine", 0,
     4294967295},
    {"markdown", "", &Settings::markdown, kOptions, "Hidden", "the page docs/options.md"},
    {"model-files", "TEXT", &Settings::model_files, kEngine, "Hidden",
     "what the front has opened; another file is refused"},
    {"step-down", "N", &Settings::step_down, kEngine, "Hidden",
     "1: after hangs, with one card or with smaller pieces of prompts", 0, 1},
};

// Of later versions, so that nobody takes them for a typing mistake.
constexpr std::string_view kLater[] = {"batch-mtp", "kv-resident", "mmap-experts", "native",
                                       "pcie-frac", "peer-device", "ple-gguf",     "ple-io"};

[[noreturn]] void refuse(const OptionSpec& option, std::string_view text, std::string_view why) {
  throw Error(ErrorCode::kInvalidArgument, format("--{} {}: {}", option.name, text, why));
}

std::string number_text(double value) { return format("{}", value); }

template <class T>
T parse_number(const OptionSpec& option, std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = end == text.data() + text.size() && !text.empty();
  const bool integer = std::is_integral_v<T>;
  if (error == std::errc::invalid_argument || !whole) {
    refuse(option, text, integer ? "not a whole number" : "not a number");
  }
  if (error == std::errc::result_out_of_range || !std::isfinite(static_cast<double>(value)) ||
      static_cast<double>(value) < option.min || static_cast<double>(value) > option.max) {
    if constexpr (std::is_unsigned_v<T>) {
      refuse(option, text, format("not between 0 and {}", std::numeric_limits<T>::max()));
    }
    const bool bounded = option.max < kAny;
    refuse(option, text,
           bounded
               ? format("not between {} and {}", number_text(option.min), number_text(option.max))
               : format("not a number from {} on", number_text(option.min)));
  }
  return value;
}

std::vector<std::string_view> words_of(std::string_view value) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t bar = value.find('|');
    words.push_back(value.substr(0, bar));
    if (bar == std::string_view::npos) return words;
    value.remove_prefix(bar + 1);
  }
}

// A string option whose value is written in small letters alone takes one of these words.
bool is_choice(const OptionSpec& option) {
  return option.value.find('|') != std::string_view::npos &&
         std::none_of(option.value.begin(), option.value.end(),
                      [](char c) { return (c >= 'A' && c <= 'Z') || c == '['; });
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7F;
}

bool takes_auto(const OptionSpec& option) { return option.value.starts_with("auto|"); }

// Letters to add, drop or change, or neighbours to swap.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1), last, before;
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({substitute, last[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

struct Assign {
  const OptionSpec& option;
  std::string_view text;
  Settings& settings;

  void operator()(std::string Settings::*to) const {
    if (is_choice(option)) {
      const auto words = words_of(option.value);
      if (std::find(words.begin(), words.end(), text) == words.end()) {
        refuse(option, text, format("one of {}", option.value));
      }
    }
    settings.*to = text;
  }
  void operator()(int64_t Settings::*to) const {
    settings.*to = takes_auto(option) && text == "auto" ? 0 : parse_number<int64_t>(option, text);
  }
  void operator()(std::optional<uint64_t> Settings::*to) const {
    if (takes_auto(option) && text == "auto") {
      settings.*to = std::nullopt;
    } else {
      settings.*to = parse_number<uint64_t>(option, text);
    }
  }
  void operator()(double Settings::*to) const { settings.*to = parse_number<double>(option, text); }
  void operator()(bool Settings::*to) const {
    if (text != "true" && text != "false") refuse(option, text, "true or false");
    settings.*to = text == "true";
  }
  void operator()(std::vector<std::string> Settings::*to) const {
    // They all are compared with headers of HTTP, which hold no such character. The text is not
    // shown: it may be a key.
    if (text.empty() || std::any_of(text.begin(), text.end(), is_control) || text.front() == ' ' ||
        text.back() == ' ') {
      throw Error(ErrorCode::kInvalidArgument,
                  format("--{}: the text is empty, has a blank at an end, or a line end or another "
                         "control character in it: no client could send it",
                         option.name));
    }
    (settings.*to).emplace_back(text);
  }
};

struct ToText {
  const OptionSpec& option;
  const Settings& settings;

  std::string operator()(std::string Settings::*from) const { return settings.*from; }
  std::string operator()(int64_t Settings::*from) const {
    const int64_t value = settings.*from;
    return value == 0 && takes_auto(option) ? "auto" : format("{}", value);
  }
  std::string operator()(std::optional<uint64_t> Settings::*from) const {
    const std::optional<uint64_t>& value = settings.*from;
    return value ? format("{}", *value) : std::string();
  }
  std::string operator()(double Settings::*from) const { return number_text(settings.*from); }
  std::string operator()(bool Settings::*from) const { return settings.*from ? "true" : "false"; }
  std::string operator()(std::vector<std::string> Settings::*) const { return {}; }
};

}  // namespace

std::span<const CommandSpec> command_table() { return kCommands; }
const CommandSpec& spec_of(Command command) {
  for (const CommandSpec& spec : kCommands) {
    if (spec.command == command) return spec;
  }
  STRATA_CHECK(false);
  return kCommands[0];
}

std::span<const OptionSpec> option_table() { return kTable; }
std::span<const std::string_view> option_groups() { return kGroups; }

const OptionSpec* find_option(std::string_view name, Command command) {
  const OptionSpec* elsewhere = nullptr;
  for (const OptionSpec& option : kTable) {
    if (option.name != name) continue;
    if ((option.commands & command) != 0) return &option;
    if (option.group != "Hidden") elsewhere = &option;
  }
  return elsewhere;
}

bool is_switch(const OptionSpec& option) { return option.value.empty(); }
bool is_list(const OptionSpec& option) {
  return std::holds_alternative<std::vector<std::string> Settings::*>(option.place);
}

void assign(const OptionSpec& option, std::string_view text, Settings& settings) {
  std::visit(Assign{option, text, settings}, option.place);
}

std::string value_text(const OptionSpec& option, const Settings& settings) {
  return std::visit(ToText{option, settings}, option.place);
}

std::string default_text(const OptionSpec& option) {
  if (!option.unset.empty()) return std::string(option.unset);
  return value_text(option, Settings{});
}

std::vector<std::string> to_arguments(Command command, const Settings& settings) {
  std::vector<std::string> arguments;
  for (const OptionSpec& option : kTable) {
    if ((option.commands & command) == 0 || option.name == "config" || is_list(option)) continue;
    const std::string value = value_text(option, settings);
    if (value == value_text(option, Settings{})) continue;
    arguments.push_back(is_switch(option) ? format("--{}", option.name)
                                          : format("--{}={}", option.name, value));
  }
  return arguments;
}

std::string nearest(std::string_view word, std::span<const std::string_view> words) {
  std::string_view best;
  size_t least = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string_view each : words) {
    const size_t d = distance(word, each);
    if (d < least) {
      least = d;
      best = each;
    }
  }
  return std::string(best);
}

std::string unknown_option(std::string_view name, Command command) {
  const std::string_view bare = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  if (std::find(std::begin(kLater), std::end(kLater), bare) != std::end(kLater)) {
    return format("--{} is not in this version yet", bare);
  }
  std::vector<std::string_view> names;
  for (const OptionSpec& option : kTable) {
    if ((option.commands & command) != 0 && option.group != "Hidden") names.push_back(option.name);
  }
  const std::string near = nearest(bare, names);
  // As it was typed, if that was with other dashes than two.
  return format("there is no option {}{}{}; `strata {} --help` lists them",
                bare.size() < name.size() ? "" : "--", name,
                near.empty() ? std::string() : format(", did you mean --{}?", near),
                spec_of(command).name);
}

}  // namespace strata::cli
