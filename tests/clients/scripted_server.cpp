// A server whose model writes what the test says, for clients in other languages: the last line of
// the prompt is "user:SCRIPT {...}" with text, cut (bytes of a piece), finish ("stop", "length"),
// delay_ms between pieces, and code ("internal", "resource"): an error at the end.
//   scripted_server [--api-key KEY] [--full]
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>

#include "strata/server/server.h"
#include "strata/server/testing/fake_frontend.h"

namespace {

using namespace strata;
using Json = nlohmann::json;

class ScriptedEngine final : public supervise::EngineClient {
 public:
  explicit ScriptedEngine(bool full) : full_(full) {}
  ~ScriptedEngine() override {
    for (auto& [id, thread] : threads_) thread.join();
  }

  wire::RequestId submit(wire::Submit submit, Callbacks callbacks) override {
    const std::lock_guard lock(mutex_);
    const wire::RequestId id = ++last_;
    threads_[id] = std::thread(
        [this, id, submit = std::move(submit), callbacks] { write(id, submit, callbacks); });
    return id;
  }
  void cancel(wire::RequestId request) override {
    const std::lock_guard lock(mutex_);
    cancelled_[request] = true;
  }
  supervise::Status status() const override {
    supervise::Status status;
    status.state = supervise::State::kReady;
    status.limits = {1 << 20, (1 << 20) - 1, 8, 258};
    status.n_requests = full_ ? 1000 : 0;
    return status;
  }

 private:
  bool is_cancelled(wire::RequestId id) {
    const std::lock_guard lock(mutex_);
    return cancelled_[id];
  }

  static Json script_of(const wire::Submit& submit) {
    std::string text(submit.ids.begin(), submit.ids.end());
    const size_t at = text.rfind("SCRIPT ");
    if (at == std::string::npos) return {{"text", "no script"}};
    return Json::parse(text.substr(at + 7, text.find('\n', at) - at - 7));
  }

  void write(wire::RequestId id, const wire::Submit& submit, const Callbacks& callbacks) {
    const Json script = script_of(submit);
    const std::string text = script["text"];
    const size_t cut = script.value("cut", 1000);
    int32_t n = 0;
    for (size_t at = 0; at < text.size(); at += cut) {
      if (is_cancelled(id))
        return callbacks.on_event(wire::Finished{wire::Reason::kCancelled, {}, {}});
      callbacks.on_event(wire::Tokens{{1}, text.substr(at, cut)});
      ++n;
      std::this_thread::sleep_for(std::chrono::milliseconds(script.value("delay_ms", 0)));
    }
    const std::string code = script.value("code", "");
    if (!code.empty())
      return callbacks.on_event(wire::Failed{
          code == "resource" ? ErrorCode::kResourceExhausted : ErrorCode::kInternal, "as asked"});
    const bool cut_off = script.value("finish", "stop") == "length";
    callbacks.on_event(wire::Finished{cut_off ? wire::Reason::kLength : wire::Reason::kStop,
                                      {static_cast<int32_t>(submit.ids.size()), n, 0},
                                      {1, 2, 3}});
  }

  const bool full_;
  std::mutex mutex_;
  std::map<wire::RequestId, std::thread> threads_;
  std::map<wire::RequestId, bool> cancelled_;
  wire::RequestId last_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  server::Config config;
  config.port = 0;
  config.model_name = "scripted";
  bool full = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--full") full = true;
    if (word == "--api-key" && i + 1 < argc) config.api_keys.emplace_back(argv[++i]);
  }
  server::testing::FakeFrontend frontend;
  server::Server server(config);
  ScriptedEngine engine(full);
  std::fprintf(stderr, "scripted_server: serving on %s\n", server.url().c_str());
  return server.run(frontend, engine);
}
