#include "strata/cli/model_setup.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <utility>

#include "strata/base/cpu_features.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/base/os/cpus.h"
#include "strata/base/os/memory.h"
#include "strata/base/os/terminal.h"
#include "strata/base/os/topology.h"
#include "strata/base/random_bits.h"
#include "strata/cli/commands.h"
#include "strata/cli/machine_file.h"
#include "strata/cli/model_files.h"
#include "strata/gguf/escape.h"

namespace strata::cli {
namespace {

namespace fs = std::filesystem;

// Enough for code that is repeated; few are often right beyond it.
constexpr int kUsualGuesses = 8;
constexpr Bytes kMostCache = Bytes{2} << 30;
constexpr const char* kDemo = "models/strata-demo.gguf";
// Where nothing is loaded faster than this, a line that comes and goes would only flicker.
constexpr std::chrono::milliseconds kQuiet{500};

using kernels::CacheType;
using model::RopeScaling;
using model::WeightForm;

// What a word of an option stands for; nothing for auto. Which words there are is checked where
// options are read: this finds only what is missing in a list.
template <class T>
std::optional<T> meaning(std::string_view option, std::string_view word,
                         std::initializer_list<std::pair<std::string_view, T>> words) {
  if (word == "auto") return std::nullopt;
  for (const auto& [text, value] : words) {
    if (text == word) return value;
  }
  throw Error(ErrorCode::kInvalidArgument, format("--{} {}: an unknown word", option, word));
}

}  // namespace

void apply_process_settings(const Invocation& invocation) {
  const Settings& s = invocation.settings;
  LogLevel level = LogLevel::kWarning;
  if (invocation.command == kServe || invocation.command == kEngine || s.verbose) {
    level = LogLevel::kInfo;
  }
  if (s.log_level != "auto") parse_log_level(s.log_level, level);
  set_log_level(level);
  CpuLevel cpu = CpuLevel::kBaseline;
  if (s.cpu_isa != "auto" && parse_cpu_level(s.cpu_isa, cpu)) {
    set_cpu_features(limited(detect_cpu_features(), cpu));
  }
}

void warn(std::string_view text) {
  std::fprintf(stderr, "strata: warning: %s\n", gguf::printable(text).c_str());
}

std::string find_model(const Settings& settings) {
  if (!settings.model.empty()) return settings.model;
  std::error_code error;
  if (fs::exists(kDemo, error)) return kDemo;
  // build/PRESET/bin/strata lies three folders below the repository.
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (int i = 0; i < 4 && !folder.empty(); ++i, folder = folder.parent_path()) {
    if (fs::exists(folder / kDemo, error)) return (folder / kDemo).string();
  }
  throw Error(ErrorCode::kNotFound,
              format("no model given, and the demo model {} is neither below this folder nor in "
                     "the repository of the program",
                     kDemo));
}

int thread_count(const Settings& s) {
  const auto asked = s.threads > 0 ? std::optional(static_cast<int>(s.threads)) : std::nullopt;
  const os::ThreadChoice threads =
      os::choose_threads(asked, os::cpu_budget(), os::read_topology().n_cores);
  if (!threads.warning.empty()) warn(threads.warning);
  return threads.n_threads;
}

std::vector<int> parse_layer_split(const std::string& text) {
  std::vector<int> layers;
  if (text == "auto") return layers;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    int n = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, n);
    if (error != std::errc() || stop != text.data() + end || n < 0) {
      throw Error(ErrorCode::kInvalidArgument,
                  format("--layer-split {}: wanted are numbers of layers, as in 20,28", text));
    }
    layers.push_back(n);
    at = end + 1;
  }
  return layers;
}

memory::PlanWishes memory_wishes(const Settings& s) {
  constexpr Bytes kMiB = Bytes{1} << 20;
  const auto mib = [](std::optional<uint64_t> n) {
    return n ? std::optional(*n * kMiB) : std::nullopt;
  };
  memory::PlanWishes w{.cards = {.reserve_first = mib(s.vram_reserve_mib),
                                 .reserve_later = mib(s.vram_reserve_later_mib),
                                 .limit = mib(s.vram_limit_mib)}};
  if (s.expert_cache) w.expert_slots = static_cast<int>(*s.expert_cache);
  if (s.resident_experts) w.experts = memory::ExpertsInRam::kResident;
  if (s.resident_budget_gib > 0) {
    w.experts = memory::ExpertsInRam::kBudget;
    w.expert_ram = static_cast<Bytes>(s.resident_budget_gib * 1024 * kMiB);
  }
  return w;
}

namespace {

// Simulated cards like those of a machine, and no more memory than it has.
void pose_as(const memory::Machine& machine, model::InstanceOptions& options) {
  if (options.device != "sim") {
    throw Error(ErrorCode::kInvalidArgument,
                "--machine: only simulated cards can be like those of another machine; --device "
                "sim is wanted beside it");
  }
  options.device = sim_devices(machine);
  os::MemoryBudget memory = os::memory_budget();
  const Bytes free = machine.ram - std::min(machine.ram, machine.ram_used_by_others);
  memory.total = std::min(memory.total, machine.ram);
  memory.available = std::min(memory.available, free);
  options.memory = memory;
}

}  // namespace

model::InstanceOptions instance_options(const Settings& s, const std::string& path) {
  model::InstanceOptions options;
  options.path = path;
  options.weights = meaning<WeightForm>("weights", s.weights,
                                        {{"mapped", WeightForm::kMapped},
                                         {"tiles", WeightForm::kTiles},
                                         {"copied", WeightForm::kCopied}});
  options.device = s.device;
  options.hangs_take_time = true;
  if (!s.machine.empty()) pose_as(read_machine(s.machine), options);
  options.layer_split = parse_layer_split(s.layer_split);
  options.wishes = memory_wishes(s);
  options.expert_profile = s.expert_profile;
  options.threads = static_cast<int>(s.threads);
  options.max_context = s.max_context;
  options.chunk = static_cast<int>(s.prefill);
  options.max_out = static_cast<int>(s.window);
  options.kv = meaning<CacheType>(
      "kv", s.kv, {{"f16", CacheType::kF16}, {"f32", CacheType::kF32}, {"int8", CacheType::kI8}});
  options.rope_scaling = meaning<RopeScaling>(
      "rope-scaling", s.rope_scaling, {{"none", RopeScaling::kNone}, {"yarn", RopeScaling::kYarn}});
  options.rope_scale = s.rope_scale;
  options.yarn_context = s.yarn_orig_ctx;
  return options;
}

model::InstanceOptions answering_options(const Invocation& invocation, const std::string& path) {
  const Settings& s = invocation.settings;
  model::InstanceOptions options = instance_options(s, path);
  options.spec = max_guesses(invocation);
  options.draft = options.spec > 0 && s.mtp != "off";
  if (s.mtp_hnorm != "auto") options.draft_norm_per_stream = s.mtp_hnorm == "stream";
  return options;
}

engine::StepLimit step_limit(const Settings& s) {
  constexpr int kRowsForTwice = 60;
  const auto base = std::chrono::milliseconds(std::lround(s.step_limit_s * 1000));
  return {.base = base, .per_row = base / kRowsForTwice};
}

int max_guesses(const Invocation& invocation) {
  const int usual = invocation.command == kBench ? 0 : kUsualGuesses;
  const std::optional<uint64_t>& asked = invocation.settings.spec;
  return asked ? static_cast<int>(*asked) : usual;
}

engine::EngineOptions engine_options(const Invocation& invocation, const gguf::Model& file) {
  const Settings& s = invocation.settings;
  engine::EngineOptions options{.drafts = {.most = max_guesses(invocation),
                                           .automatic = !s.spec.has_value(),
                                           .min_probability = static_cast<float>(s.spec_min_p)},
                                .step_limit = step_limit(s)};
  if (invocation.command == kBench) return options;  // which asks the same again and again
  constexpr Bytes kMib = Bytes{1} << 20;
  options.cache.bytes = s.prompt_cache_mib
                            ? *s.prompt_cache_mib * kMib
                            : std::min(os::memory_budget().available / 16, kMostCache);
  options.cache.folder = s.prompt_cache_dir;
  // The files themselves: whoever changes one changes its time or its place.
  for (const char c : ModelFiles(file).text()) {
    options.cache.fingerprint =
        random_bits(options.cache.fingerprint, static_cast<unsigned char>(c) + uint64_t{1});
  }
  return options;
}

void report_choices(model::Instance& instance, const Settings& settings) {
  std::string line;
  for (const memory::Decision& d : instance.decisions()) {
    line += format("{}{} {} ({})", line.empty() ? "" : ", ", d.name, d.value, d.why);
  }
  log_info(format("{} on {}, processor {}: {}",
                  gguf::escaped(model_name(instance.file().shards().front().path)), settings.device,
                  cpu_features().text(), line));
  for (const std::string& text : instance.warnings()) log_warning(text);
  const std::string doubt = text::vocab_warning(text::read_vocab(instance.file().metadata()));
  if (!doubt.empty()) log_warning(doubt);
  const std::string table = instance.plan().table();
  if (settings.show_plan) {
    std::fprintf(stderr, "%s", table.c_str());
  } else {
    log_debug(format("plan:\n{}", table));
  }
}

std::string drafts_text(const wire::Drafts& drafts) {
  if (drafts.guessed.empty() || drafts.passes == 0) return {};
  uint64_t n_right = 0;
  std::string shares;
  for (size_t i = 0; i < drafts.guessed.size(); ++i) {
    n_right += drafts.right[i];
    shares +=
        format("{}{} % of {}", i == 0 ? "" : ", ",
               drafts.right[i] * 100 / std::max<uint64_t>(drafts.guessed[i], 1), drafts.guessed[i]);
  }
  const auto passes = static_cast<double>(drafts.passes);
  return format("{:.2f} tokens a pass, right {}", 1 + static_cast<double>(n_right) / passes,
                shares);
}

std::string model_name(const std::string& path) {
  const fs::path file = fs::path(path).lexically_normal();
  std::string name = file.extension() == ".gguf" ? file.stem().string() : file.filename().string();
  if (name.empty()) name = file.parent_path().filename().string();
  // "x-00001-of-00003"
  constexpr std::string_view kShape = "-#####-of-#####";
  if (name.size() > kShape.size()) {
    const std::string_view tail = std::string_view(name).substr(name.size() - kShape.size());
    const bool shard = std::equal(tail.begin(), tail.end(), kShape.begin(), [](char c, char shape) {
      return shape == '#' ? c >= '0' && c <= '9' : c == shape;
    });
    if (shard) name.resize(name.size() - kShape.size());
  }
  return name.empty() ? "model" : name;
}

std::unique_ptr<text::Tokenizer> read_tokenizer(const gguf::Model& file) {
  return std::make_unique<text::Tokenizer>(text::read_vocab(file.metadata()));
}

std::unique_ptr<text::ChatTemplate> read_chat_template(const gguf::Model& file,
                                                       const text::Tokenizer& tokenizer) {
  const auto source = file.metadata().find_string("tokenizer.chat_template");
  const auto piece = [&](std::optional<int32_t> id) {
    return id && tokenizer.contains(*id) ? std::string(tokenizer.piece(*id)) : std::string();
  };
  return std::make_unique<text::ChatTemplate>(
      source.value_or("{{ raise_exception('this model has no chat template: only completions of "
                      "plain text are possible') }}"),
      piece(tokenizer.bos_id()), piece(tokenizer.eos_id()));
}

Progress::Progress(const Settings& settings, std::string what)
    : what_(std::move(what)),
      begun_(std::chrono::steady_clock::now()),
      wanted_(settings.progress || os::is_terminal(os::kStderr)) {}

Progress::~Progress() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
}

void Progress::show(uint64_t done, uint64_t total) {
  if (!wanted_ || total == 0) return;
  if (std::chrono::steady_clock::now() - begun_ < kQuiet) return;
  const int percent =
      static_cast<int>(static_cast<double>(done) * 100 / static_cast<double>(total));
  if (percent == percent_) return;
  percent_ = percent;
  shown_ = true;
  std::fprintf(stderr, "\r%s: %d %%", what_.c_str(), percent);
}

void load_and_seal(model::Instance& instance, const Settings& settings) {
  report_choices(instance, settings);
  Progress progress(settings);
  instance.load([&](Bytes done, Bytes total) { progress.show(done, total); });
  instance.seal();
}

}  // namespace strata::cli
