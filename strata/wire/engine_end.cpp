#include "strata/wire/engine_end.h"

#include <utility>
#include <variant>

namespace strata::wire {

void serve_engine(Link& link, const EngineEnd& end) {
  using Clock = std::chrono::steady_clock;
  bool shut_down = false;
  auto next_pulse = Clock::now();
  const Link::OnFrame on_frame = [&](const Frame& frame, std::string_view payload) {
    Command command = decode_command(frame, payload);
    shut_down = shut_down || std::holds_alternative<Shutdown>(command);
    end.on_command(frame.request, std::move(command));
  };
  while (!shut_down) {
    const auto now = Clock::now();
    if (now >= next_pulse) {
      link.send(kNoRequest, Event(end.pulse()));
      next_pulse = now + end.pulse_interval;
    }
    const auto limit = std::chrono::ceil<std::chrono::milliseconds>(next_pulse - now);
    if (!link.turn(limit, on_frame) && !shut_down) {
      shut_down = true;
      end.on_command(kNoRequest, Shutdown{});
    }
  }
}

}  // namespace strata::wire
