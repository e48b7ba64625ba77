#include "strata/supervise/restart_policy.h"

#include <algorithm>
#include <csignal>

#include "strata/base/format.h"

namespace strata::supervise {
namespace {

// What a shell or an exec says that could not start the program.
constexpr int kNotStarted = 127;

// The second hang of a kind is answered with less, the third with nothing.
constexpr int kLastHang = 3;

std::string_view exit_words(int status) {
  for (const ExitStatus& each : exit_statuses()) {
    if (each.status == status) return each.words;
  }
  return status == kNotStarted ? "the program could not be started" : "no known reason";
}

std::string_view signal_words(int code) {
  switch (code) {
    case SIGKILL:
      return ", probably out of memory";
    case SIGSEGV:
      return ", a bad memory access";
    case SIGABRT:
      return ", it gave up on an internal error";
    case SIGBUS:
      return ", a file or disk failed under it";
    case SIGILL:
      return ", an instruction that this CPU lacks";
    case SIGFPE:
      return ", an arithmetic error";
    case SIGTERM:
      return ", ended from outside";
    default:
      return "";
  }
}

std::string how(const Death& death) {
  switch (death.how) {
    case Death::How::kExit:
      return format("left with code {} ({}{}{})", death.code,
                    death.error ? words(*death.error) : exit_words(death.code),
                    death.detail.empty() ? "" : ": ", death.detail);
    case Death::How::kSignal:
      return format("killed by signal {}{}", death.code, signal_words(death.code));
    case Death::How::kStalled:
      return format("killed because it {}", death.detail);
    case Death::How::kBroken:
      return format("killed because it sent a broken message ({})", death.detail);
    case Death::How::kLaunch:
      break;
  }
  return format("could not be started: {}", death.detail);
}

// Equal for hangs at the same place: sizes and times are the request's.
std::string without_figures(const std::string& text) {
  std::string place;
  std::ranges::copy_if(text, std::back_inserter(place), [](char c) { return c < '0' || c > '9'; });
  return place;
}

// Equal for deaths that are worth calling the same. Figures in a phase are progress, not place.
std::string place_of(const Death& death) {
  const std::string place = format("{} {} ", static_cast<int>(death.how), death.code);
  if (!death.was_ready) return place + without_figures(death.phase);
  return place + (death.had_work ? "working" : "idle");
}

bool killed_from_outside(const Death& death) {
  return death.how == Death::How::kSignal && (death.code == SIGKILL || death.code == SIGTERM) &&
         death.was_ready && !death.had_work;
}

}  // namespace

std::string describe(const Death& death) {
  std::string text = how(death);
  if (death.how != Death::How::kLaunch) {
    if (death.was_ready)
      text += death.had_work ? ", while answering" : ", while idle";
    else if (!death.phase.empty())
      text += format(", while {}", death.phase);
  }
  return text;
}

bool RestartPolicy::passes(int status) const {
  return status == 0 || status == exit_code(ErrorCode::kInternal) ||
         status == exit_code(ErrorCode::kIo) ||
         (status == exit_code(ErrorCode::kResourceExhausted) && ever_ready_);
}

int RestartPolicy::count_hang(const Death& death) {
  if (death.hang.empty()) return n_hangs_ = 0;
  const std::string place = without_figures(death.hang);
  // With less running, the same trouble shows elsewhere.
  const bool same = stepped_down_ || place == last_hang_;
  n_hangs_ = same && death.uptime < settings_.hang_memory ? n_hangs_ + 1 : 1;
  last_hang_ = place;
  return n_hangs_;
}

RestartPolicy::Verdict RestartPolicy::on_death(const Death& death) {
  ever_ready_ = ever_ready_ || death.was_ready;
  const std::string reason = describe(death);
  if (death.how == Death::How::kLaunch) return {true, {}, reason};
  if (death.how == Death::How::kExit && !passes(death.code)) return {true, {}, reason};

  const int n_hangs = count_hang(death);
  if (n_hangs >= kLastHang) {
    return {
        true, {}, format("hung {} times in a row, the last time with less: {}", n_hangs, reason)};
  }
  stepped_down_ = stepped_down_ || n_hangs + 1 == kLastHang;

  const bool healthy =
      death.answered || (death.was_ready && death.uptime >= settings_.healthy_after);
  const std::string place = place_of(death);
  if (healthy) n_quick_ = n_same_ = 0;
  n_same_ = place == last_place_ ? n_same_ + 1 : 1;
  last_place_ = place;
  ++n_quick_;
  if (n_same_ >= settings_.same_deaths && !killed_from_outside(death))
    return {true, {}, format("{} times in a row: {}", n_same_, reason)};

  const int doublings = std::min(n_quick_ - 1, 20);
  const auto delay = std::min(settings_.longest_delay, settings_.first_delay * (1 << doublings));
  return {false, delay, reason, stepped_down_};
}

}  // namespace strata::supervise
