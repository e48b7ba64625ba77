#pragma once

#include <string>
#include <string_view>

namespace strata {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

// One sink a process: stderr. Each line: time, level, text. Thread-safe; warnings and errors are
// flushed at once.
void set_log_level(LogLevel level);
LogLevel log_level();
// Put before each line, e.g. "engine", so that two processes can share a terminal.
void set_log_name(std::string name);

void log(LogLevel level, std::string_view text);
inline void log_debug(std::string_view text) { log(LogLevel::kDebug, text); }
inline void log_info(std::string_view text) { log(LogLevel::kInfo, text); }
inline void log_warning(std::string_view text) { log(LogLevel::kWarning, text); }
inline void log_error(std::string_view text) { log(LogLevel::kError, text); }

// "debug", "info", "warning", "error", "off". False if the word is none of these.
bool parse_log_level(std::string_view word, LogLevel& level);

}  // namespace strata
