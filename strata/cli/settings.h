#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace strata::cli {

// Bits, so that an option can say which of them it belongs to.
enum Command : unsigned {
  kServe = 1,
  kRun = 2,
  kInspect = 4,
  kBench = 8,
  kEval = 16,
  kEngine = 32,   // hidden: the engine process of serve
  kOptions = 64,  // hidden: writes docs/options.md
  kSynth = 128,
  kPlan = 256,
  kProfile = 512,
};

// All that can be asked for, with the defaults. Filled from environment, file and command line;
// constant afterwards. What each means: the table in options.cpp.
struct Settings {
  std::string model;  // empty: the demo model
  std::string config;

  int64_t max_context = 0;  // 0 here and below: auto
  std::string kv = "auto";
  int64_t prefill = 0;
  int64_t threads = 0;
  int64_t batch = 0;
  std::string device = "host";
  std::string cpu_isa = "auto";
  std::string rope_scaling = "auto";
  double rope_scale = 0;
  int64_t yarn_orig_ctx = 0;
  std::optional<uint64_t> spec;  // nothing: auto
  double spec_min_p = 0;
  std::string prompt_cache_dir;
  std::optional<uint64_t> prompt_cache_mib;  // nothing: auto
  bool show_plan = false;
  std::string weights = "auto";

  bool examples = false;
  std::string host = "127.0.0.1";
  int64_t port = 8080;
  std::vector<std::string> api_keys;
  std::string api_key_file;
  std::vector<std::string> cors_origins;
  std::vector<std::string> allowed_hosts;
  double keepalive_s = 3;
  int64_t max_body_mib = 16;

  double temp = 1;
  int64_t top_k = 0;
  double top_p = 1;
  double min_p = 0;
  double presence_penalty = 0;
  double frequency_penalty = 0;
  double repetition_penalty = 1;
  int64_t repeat_window = 64;
  std::optional<uint64_t> seed;
  int64_t max_tokens = 0;

  int64_t max_queue = 128;
  std::string tls_cert;
  std::string tls_key;

  std::string prompt;
  std::string prompt_file;
  std::string system;
  bool raw = false;
  std::string think = "auto";
  bool progress = false;
  bool verbose = false;

  int64_t bench_prompt = 256;
  int64_t bench_gen = 64;
  int64_t repeat = 1;
  int64_t depth = 0;
  int64_t window = 0;
  bool no_bandwidth = false;

  std::string reference;
  std::string text;
  std::string mtp = "auto";
  std::string mtp_hnorm = "auto";

  int64_t synth_layers = 12;
  int64_t synth_experts = 64;
  int64_t synth_top = 10;
  int64_t synth_vocab = 32768;
  int64_t synth_ple_base = 20000;
  int64_t synth_seed = 3;
  bool synth_mtp = false;
  std::string synth_gate = "Q4_K";
  std::string synth_down = "Q5_0";
  std::string synth_dense = "Q6_K";
  std::string synth_hc = "Q8_0";
  std::string synth_ple = "IQ4_NL";
  std::string synth_emb = "Q6_K";

  bool synth_header_only = false;
  bool force = false;

  std::string machine;
  double step_limit_s = 60;
  std::string layer_split = "auto";
  std::optional<uint64_t> vram_reserve_mib, vram_reserve_later_mib, vram_limit_mib;
  std::optional<uint64_t> expert_cache;
  std::string expert_profile;
  bool resident_experts = false;
  double resident_budget_gib = 0;  // 0: no such limit

  bool json = false;
  bool markdown = false;
  std::string log_level = "auto";

  int64_t fd = -1;
  int64_t incarnation = 0;
  int64_t step_down = 0;
  std::string model_files;  // see cli/model_files.h
};

}  // namespace strata::cli
