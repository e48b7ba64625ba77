#include "strata/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <memory>
#include <utility>

namespace strata {
namespace {

constexpr std::array<std::pair<std::string_view, LogLevel>, 5> kLevels = {{
    {"debug", LogLevel::kDebug},
    {"info", LogLevel::kInfo},
    {"warning", LogLevel::kWarning},
    {"error", LogLevel::kError},
    {"off", LogLevel::kOff},
}};

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

// The process-wide sink. A shared_ptr because spdlog's registry owns it together with us.
std::shared_ptr<spdlog::logger> make_logger() {
  auto logger = spdlog::stderr_color_mt("strata");
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%-7l%$ %v");
  logger->flush_on(spdlog::level::warn);
  logger->set_level(spdlog::level::info);
  return logger;
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = make_logger();
  return *instance;
}

}  // namespace

void set_log_level(LogLevel level) { logger().set_level(to_spdlog(level)); }

LogLevel log_level() {
  for (const auto& [word, level] : kLevels) {
    if (to_spdlog(level) == logger().level()) return level;
  }
  return LogLevel::kInfo;
}

void set_log_name(std::string name) {
  logger().set_pattern("%Y-%m-%d %H:%M:%S.%e %^%-7l%$ " + name + " %v");
}

void log(LogLevel level, std::string_view text) {
  logger().log(to_spdlog(level), spdlog::string_view_t(text.data(), text.size()));
}

bool parse_log_level(std::string_view word, LogLevel& level) {
  for (const auto& [name, value] : kLevels) {
    if (name == word) {
      level = value;
      return true;
    }
  }
  return false;
}

}  // namespace strata
