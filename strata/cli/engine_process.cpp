#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/base/os/memory.h"
#include "strata/base/os/thread.h"
#include "strata/base/os/unix_socket.h"
#include "strata/cli/commands.h"
#include "strata/cli/model_files.h"
#include "strata/cli/model_setup.h"
#include "strata/device/device.h"
#include "strata/device/registry.h"
#include "strata/engine/engine.h"
#include "strata/wire/engine_end.h"
#include "strata/wire/link.h"

namespace strata::cli {
namespace {

// Above it the front is behind: the engine pauses rather than fill memory with answers.
constexpr size_t kFullBytes = size_t{1} << 20;

// What is waited for the longest, for the front to tell if it never ends.
std::string oldest_wait(const device::WaitRegistry& waits) {
  const std::vector<device::WaitRow> rows = waits.rows();
  if (rows.empty()) return {};
  const device::WaitRow& row = rows.front();
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(waits.clock().now() - row.since);
  const std::string by = waits.blocked_by();
  return format("{} on device {} for {} ms ({}){}{}", row.what.what, row.device.value, ms.count(),
                row.what.who, by.empty() ? "" : ", held up by ", by);
}

// Takes the front's commands and tells it how the engine is, for the thread that talks to the
// front.
class Reception {
 public:
  void set_phase(std::string phase) {
    const std::lock_guard lock(mutex_);
    phase_ = std::move(phase);
  }
  // From here on the engine takes commands and tells how it is, and `waits` what for.
  void set_engine(engine::Engine* engine, const device::WaitRegistry* waits) {
    waits_ = waits;
    engine_ = engine;
  }

  wire::Pulse pulse() {
    wire::Pulse pulse;
    if (engine::Engine* engine = engine_) {
      pulse = engine->pulse();
      pulse.wait = oldest_wait(*waits_);
    } else {
      const std::lock_guard lock(mutex_);
      pulse.phase = phase_;
    }
    const os::ProcessMemory memory = os::process_memory();
    pulse.resident = memory.rss;
    pulse.anonymous = memory.anon;
    return pulse;
  }
  void command(wire::RequestId id, wire::Command&& command) {
    if (engine::Engine* engine = engine_) return engine->command(id, std::move(command));
    // The reading of a file cannot be called off, and there is nothing yet that has to be kept.
    if (std::holds_alternative<wire::Shutdown>(command)) std::_Exit(0);
  }

 private:
  std::mutex mutex_;
  std::string phase_ = "opening the model";      // guarded by mutex_
  const device::WaitRegistry* waits_ = nullptr;  // set before engine_
  std::atomic<engine::Engine*> engine_ = nullptr;
};

// Talks to the front from its construction on, whatever the engine does.
class FrontThread {
 public:
  FrontThread(wire::Link& link, Reception& reception)
      : thread_([&link, &reception] { talk(link, reception); }) {}
  ~FrontThread() { join(); }
  FrontThread(const FrontThread&) = delete;
  FrontThread& operator=(const FrontThread&) = delete;

  // Returns after a Shutdown.
  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  static void talk(wire::Link& link, Reception& reception) noexcept {
    os::set_thread_name("front");
    wire::EngineEnd end;
    end.on_command = [&](wire::RequestId id, wire::Command&& command) {
      reception.command(id, std::move(command));
    };
    end.pulse = [&] { return reception.pulse(); };
    try {
      wire::serve_engine(link, end);
    } catch (const std::exception& e) {
      log_error(format("the channel to the front broke: {}", e.what()));
      std::_Exit(exit_code(ErrorCode::kInternal));
    }
  }
  std::thread thread_;
};

// The thread of the front would wait for a Shutdown, so this does not unwind. The exit code says
// what kind of end it is, the last words why.
[[noreturn]] void leave(wire::Link& link, ErrorCode code, const std::string& why,
                        const std::string& hang) {
  log_error(why);
  link.send(wire::kNoRequest, wire::Event(wire::Leaving{code, why, hang}));
  // What the socket has not taken goes out with the front's thread, if the front still reads.
  for (int i = 0; i < 50 && link.backlog_bytes() > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::_Exit(exit_code(code));
}

// Calls `body`; what it throws ends the process. hang: of the instance, if there is one.
template <class Body>
void or_leave(wire::Link& link, const std::string& hang, const Body& body) {
  try {
    body();
  } catch (const Error& e) {
    leave(link, e.code(), e.what(), hang);
  } catch (const std::bad_alloc&) {
    leave(link, ErrorCode::kResourceExhausted, "out of memory", "");
  } catch (const std::exception& e) {
    leave(link, ErrorCode::kInternal, e.what(), hang);
  }
}

// After hangs: less of what may have been their cause. Returns it in words.
std::string step_down(model::InstanceOptions& options) {
  const std::string first = device::first_card(options.device);
  const int n_cards = device::n_cards(options.device);
  if (n_cards > 1) {
    options.device = first;
    options.layer_split.clear();
    return format("after two hangs of one kind the engine runs on one card ({}) of {}", first,
                  n_cards);
  }
  const int usual = options.chunk > 0 ? options.chunk : memory::PlanWishes().usual_chunk;
  options.chunk = std::max(1, usual / 4);
  return format("after two hangs of one kind prompts are read in pieces of {} tokens, not of {}",
                options.chunk, usual);
}

void serve(const Invocation& invocation, wire::Link& link, Reception& reception,
           FrontThread& front) {
  const Settings& s = invocation.settings;
  model::InstanceOptions options = answering_options(invocation, s.model);
  options.slots = static_cast<int>(s.batch > 0 ? s.batch : 2);
  std::vector<std::string> degraded;
  if (s.step_down > 0) {
    degraded.push_back(step_down(options));
    log_warning(degraded.back());
  }
  model::Instance instance(options);
  require_files(instance.file(), s.model_files);
  const auto tokenizer = read_tokenizer(instance.file());
  engine::EngineHooks hooks;
  hooks.emit = [&](std::span<const wire::Addressed> events) { link.send(events); };
  hooks.receiver_full = [&] { return link.backlog_bytes() > kFullBytes; };
  engine::EngineOptions engine_settings = engine_options(invocation, instance.file());
  engine_settings.degraded = std::move(degraded);
  engine::Engine engine(instance, *tokenizer, std::move(hooks), engine_settings);
  report_choices(instance, s);
  engine.prepare([&](Bytes done, Bytes total) {
    const double share = total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
    reception.set_phase(share < 1 ? format("reading weights {} %", static_cast<int>(share * 100))
                                  : std::string("trying a step"));
  });
  log_info(format("memory: {}", instance.memory_text()));
  // From here on the other thread asks the engine, which must not go before that has ended.
  or_leave(link, instance.hang(), [&] {
    reception.set_engine(&engine, &instance.waits());
    // Or /health would go on with the phase of the last pulse.
    link.send(wire::kNoRequest, wire::Event(reception.pulse()));
    link.send(wire::kNoRequest, wire::Event(engine.ready()));
    engine.run();
    front.join();
  });
}

}  // namespace

int run_engine(const Invocation& invocation) {
  const Settings& s = invocation.settings;
  set_log_name("engine");
  wire::Link link(wire::socket_transport(os::adopt_socket(static_cast<int>(s.fd))),
                  static_cast<uint32_t>(s.incarnation));
  Reception reception;
  FrontThread front(link, reception);
  or_leave(link, "", [&] { serve(invocation, link, reception, front); });
  return 0;
}

}  // namespace strata::cli
