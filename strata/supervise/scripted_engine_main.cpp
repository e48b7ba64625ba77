// An engine process for tests: speaks the messages and does what its script says, one word an
// incarnation (the last goes on for all later ones):
//   ok          answers each request "one two", behind what was sent, and stops when asked
//   exit:N      leaves with N before it is ready
//   abort       is ready, then aborts at the first request, before a token
//   half        is ready, sends one token of the first request, then kills itself (SIGKILL)
//   kill-idle   is ready, then kills itself
//   deaf        is ready, then neither answers nor pulses nor stops
//   stay        as ok, but does not leave when asked
//   garbage     is ready, then sends bytes that are no message
//   forget      is ready, takes requests and never speaks of them again
//   hung        is ready, then reports one step that goes on for ever; its pulses count its steps
//   lost        is ready, then says that a device is lost at the first request, and leaves with 70
//   stuck       as ok with --step-down; else takes the first request of two tokens up, says that a
//               copy does not end, and leaves with 70
//   stuck-ever  the same in any case
//   failing     as ok, but its first pulses report one failed step more each, up to 3
//   sick        as ok, but its first three answers are internal errors
//   loading     pulses, but is never ready
//   talking     as ok, but writes a line to stderr before it is ready
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "strata/base/format.h"
#include "strata/base/os/unix_socket.h"
#include "strata/wire/engine_end.h"
#include "strata/wire/link.h"

namespace {

using namespace strata;

std::string word_for(const std::string& script, int incarnation) {
  size_t begin = 0;
  for (int i = 1; i < incarnation; ++i) {
    const size_t comma = script.find(',', begin);
    if (comma == std::string::npos) break;
    begin = comma + 1;
  }
  return script.substr(begin, script.find(',', begin) - begin);
}

[[noreturn]] void sleep_for_ever() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

void answer(wire::Link& link, wire::RequestId id, const wire::Submit& submit) {
  const auto n_prompt = static_cast<int32_t>(submit.ids.size());
  std::vector<wire::Addressed> events = {{id, wire::Progress{n_prompt, n_prompt, 0}}};
  if (submit.sent.empty()) events.push_back({id, wire::Tokens{{1}, "one "}});
  if (submit.sent.size() < 2) events.push_back({id, wire::Tokens{{2}, "two"}});
  events.push_back({id, wire::Finished{wire::Reason::kStop, {n_prompt, 3, 0}, {}}});
  link.send(events);
}

int serve(std::string word, int fd, int incarnation, bool stepped_down) {
  if (word == "stuck" && stepped_down) word = "ok";
  if (word.starts_with("exit:")) return std::atoi(word.c_str() + 5);
  os::Descriptor socket = os::adopt_socket(fd);
  const int raw = socket.get();
  wire::Link link(wire::socket_transport(std::move(socket)), static_cast<uint32_t>(incarnation));
  if (word == "talking") std::fprintf(stderr, "a line of the log\n");
  if (word != "loading") {
    link.send(wire::kNoRequest, wire::Event(wire::Ready{.limits = {512, 511, 2, 4096}}));
  }
  if (word == "kill-idle") std::raise(SIGKILL);
  if (word == "deaf") sleep_for_ever();
  if (word == "garbage") {
    os::send_some(os::Descriptor(raw), std::string(64, '\x7f'));
    sleep_for_ever();
  }
  wire::EngineEnd end;
  end.pulse_interval = std::chrono::milliseconds(5);
  uint64_t n_pulses = 0;
  int n_answers = 0;
  end.pulse = [&] {
    wire::Pulse pulse;
    pulse.phase = "ready";
    pulse.work.steps = ++n_pulses;
    if (word == "failing") pulse.work.failed_steps = std::min<uint64_t>(n_pulses, 3);
    if (word == "hung") {
      pulse.step_ms = 1'000'000;
      pulse.step_rows = 4;
      pulse.wait = "the step";
      pulse.n_running = 1;
    }
    return pulse;
  };
  end.on_command = [&](wire::RequestId id, wire::Command&& command) {
    const auto* submit = std::get_if<wire::Submit>(&command);
    if (submit == nullptr) return;
    if (word == "abort") std::abort();
    if (word == "sick" && n_answers++ < 3) {
      link.send(id, wire::Event(wire::Failed{ErrorCode::kInternal, "no logit is finite"}));
      return;
    }
    if (word == "half") {
      link.send(id, wire::Event(wire::Tokens{{1}, "one "}));
      std::raise(SIGKILL);
    }
    if (word == "lost") {
      link.send(wire::kNoRequest, wire::Event(wire::Leaving{ErrorCode::kDeviceLost, "bus error"}));
      std::_Exit(exit_code(ErrorCode::kDeviceLost));
    }
    if (word.starts_with("stuck") && submit->ids.size() == 2) {
      link.send(id, wire::Event(wire::Progress{0, 2, 0}));
      link.send(wire::kNoRequest,
                wire::Event(wire::Leaving{ErrorCode::kDeviceLost, "a step does not end",
                                          format("a copy of {} B does not end", incarnation)}));
      std::_Exit(exit_code(ErrorCode::kDeviceLost));
    }
    if (word != "forget" && word != "hung") answer(link, id, *submit);
  };
  wire::serve_engine(link, end);
  if (word == "stay") sleep_for_ever();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> options;
  for (int i = 1; i + 1 < argc; i += 2) options[argv[i]] = argv[i + 1];
  const int incarnation = std::atoi(options["--incarnation"].c_str());
  return serve(word_for(options["--script"], incarnation), std::atoi(options["--fd"].c_str()),
               incarnation, options["--step-down"] == "1");
}
