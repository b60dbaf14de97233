// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "base/log.h"

#include <unistd.h>

#include <utility>

namespace alcove {
namespace {

void write_to_stderr(LogLevel level, std::string_view message) {
  constexpr std::string_view kNames[] = {"debug ", "info  ", "warn  ", "error "};
  std::string line(kNames[static_cast<size_t>(level)]);
  line += message;
  line += '\n';
  // One write, so that lines of several threads do not mix. Nothing can be done if it fails.
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

std::function<void(LogLevel, std::string_view)>& sink() {
  static std::function<void(LogLevel, std::string_view)> instance = write_to_stderr;
  return instance;
}

LogLevel minimum_level = LogLevel::kInfo;

void log(LogLevel level, std::string_view message) {
  if (level >= minimum_level) sink()(level, message);
}

}  // namespace

void set_log_sink(std::function<void(LogLevel, std::string_view)> new_sink) {
  sink() = std::move(new_sink);
}
void set_log_level(LogLevel minimum) { minimum_level = minimum; }

void log_debug(std::string_view message) { log(LogLevel::kDebug, message); }
void log_info(std::string_view message) { log(LogLevel::kInfo, message); }
void log_warn(std::string_view message) { log(LogLevel::kWarn, message); }
void log_error(std::string_view message) { log(LogLevel::kError, message); }

}  // namespace alcove
