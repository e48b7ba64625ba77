#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/base/text.h"
#include "strata/cli/commands.h"
#include "strata/cli/model_files.h"
#include "strata/cli/model_setup.h"
#include "strata/cli/sampling.h"
#include "strata/cli/supervision.h"
#include "strata/cli/version.h"
#include "strata/server/server.h"
#include "strata/supervise/supervisor.h"

namespace strata::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> read_keys(const std::string& path) {
  std::vector<std::string> keys;
  std::istringstream lines(read_text_file(path, "API key file"));
  for (std::string line; std::getline(lines, line);) {
    const std::string_view key = trimmed(line);
    if (!key.empty() && key[0] != '#') keys.emplace_back(key);
  }
  // An empty file must not open the server to everyone.
  if (keys.empty()) {
    throw Error(ErrorCode::kInvalidArgument, format("API key file {}: no key in it", path));
  }
  return keys;
}

server::Config server_config(const Settings& s) {
  server::Config config;
  config.host = s.host;
  config.port = static_cast<uint16_t>(s.port);
  config.api_keys = s.api_keys;
  if (!s.api_key_file.empty()) {
    for (std::string& key : read_keys(s.api_key_file)) config.api_keys.push_back(std::move(key));
  }
  config.cors_origins = s.cors_origins;
  config.allowed_hosts = s.allowed_hosts;
  config.keepalive = std::chrono::milliseconds(std::lround(s.keepalive_s * 1000));
  config.max_body_bytes = static_cast<size_t>(s.max_body_mib) << 20;
  config.max_bodies_bytes = std::max(config.max_bodies_bytes, config.max_body_bytes);
  config.max_queue = static_cast<int>(s.max_queue);
  config.tls_cert_file = s.tls_cert;
  config.tls_key_file = s.tls_key;
  config.default_sampling = sampling_of(s);
  return config;
}

fs::path program_path() {
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) throw Error(ErrorCode::kIo, format("/proc/self/exe: {}", error.message()));
  return program;
}

// What the engine process is started with: the settings that are its business, and the model by a
// path that no folder change or leading dash can spoil.
std::vector<std::string> engine_arguments(Settings settings, const std::string& model,
                                          const ModelFiles& files) {
  settings.model_files = files.text();
  std::vector<std::string> words = {program_path().string(), "engine",
                                    fs::absolute(model).string()};
  for (std::string& word : to_arguments(kEngine, settings)) words.push_back(std::move(word));
  return words;
}

// The folders that errors of the engine may name. The longest first: one may lie in another.
std::vector<std::string> private_folders(const std::string& model) {
  std::vector<std::string> folders = {fs::absolute(model).parent_path().string(),
                                      program_path().parent_path().string()};
  std::sort(folders.begin(), folders.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  return folders;
}

// Both the model's, read from the header of its file, and none of its weights.
struct Texts {
  explicit Texts(const gguf::Model& file)
      : tokenizer(read_tokenizer(file)),
        chat_template(read_chat_template(file, *tokenizer)),
        files(file) {}
  explicit Texts(const std::string& path) : Texts(gguf::Model::open(path)) {}

  const std::unique_ptr<text::Tokenizer> tokenizer;
  const std::unique_ptr<text::ChatTemplate> chat_template;
  const ModelFiles files;
};

// Starts engines as long as the model is the one whose texts the front uses. The engine looks at
// what it has opened once more; here the reason is told without what a changed file says first.
class SameModelLauncher final : public supervise::Launcher {
 public:
  SameModelLauncher(std::unique_ptr<supervise::Launcher> launcher, const ModelFiles& files)
      : launcher_(std::move(launcher)), files_(files) {}
  std::unique_ptr<supervise::EngineProcess> launch(uint32_t incarnation, bool step_down) override {
    files_.require_unchanged();
    return launcher_->launch(incarnation, step_down);
  }

 private:
  const std::unique_ptr<supervise::Launcher> launcher_;
  const ModelFiles& files_;
};

// What a person may do now. Words for a shell are quoted; a key is not shown.
std::string examples(const Settings& s, const server::Config& config, std::string url) {
  const auto quoted = [](const std::string& word) {
    std::string text = "'";
    for (const char c : word) c == '\'' ? text += "'\\''" : text += c;
    return text + "'";
  };
  for (const std::string_view any : {"0.0.0.0", "[::]"}) {
    const size_t at = url.find(any);
    if (at != std::string::npos) url.replace(at, any.size(), "127.0.0.1");
  }
  const std::string model = s.model.empty() ? "" : quoted(fs::absolute(s.model).string()) + " ";
  const std::string key = config.api_keys.empty()
                              ? ""
                              : " -H 'Authorization: Bearer YOUR_KEY' \\\n                     ";
  return format(
      "\nReady. Ctrl-C ends it. Try:\n\n"
      "    the chat page     {0}/\n"
      "    one question      curl {0}/v1/chat/completions{1} -H 'Content-Type: application/json' "
      "\\\n"
      "                        -d '{{\"messages\": [{{\"role\": \"user\", \"content\": \"What is a "
      "piano?\"}}], \"temperature\": 0}}'\n"
      "    the terminal      {2} run {3}-p \"What is a piano?\" --temp 0\n\n",
      url, key, quoted(program_path().string()), model);
}

}  // namespace

bool has_server() { return true; }

int run_serve(const Invocation& invocation) {
  const Settings& s = invocation.settings;
  const std::string path = find_model(s);
  server::Config config = server_config(s);
  // The engine has no use for it, and its memory may be dumped.
  ::unsetenv("STRATA_API_KEY");
  config.model_name = model_name(path);
  config.version = build_version();
  config.private_folders = private_folders(path);
  // The port first: who cannot have it need not wait for a model.
  server::Server server(std::move(config));
  server.catch_signals();
  const Texts texts(path);
  const auto frontend = server::text_frontend(*texts.tokenizer, *texts.chat_template);
  std::fprintf(stderr, "strata: serving %s on %s\n", server.config().model_name.c_str(),
               server.url().c_str());
  supervise::Settings settings = supervisor_settings(s);
  // Twice what the engine itself gives a step, which then has had time to withdraw it.
  const engine::StepLimit limit = step_limit(s);
  settings.step_limit = 2 * limit.base;
  settings.step_limit_per_row = 2 * limit.per_row;
  if (s.examples) {
    settings.first_ready = [text = examples(s, server.config(), server.url())] {
      std::fputs(text.c_str(), stderr);
    };
  }
  supervise::Supervisor engine(
      std::make_unique<SameModelLauncher>(
          supervise::process_launcher(engine_arguments(s, path, texts.files)), texts.files),
      settings);
  const int code = server.run(*frontend, engine);
  engine.stop();
  if (code != 0) {
    const supervise::Status status = engine.status();
    std::fprintf(stderr, "strata: the engine %s\n",
                 status.reasons.empty() ? "failed" : status.reasons.front().c_str());
  }
  return code;
}

}  // namespace strata::cli
