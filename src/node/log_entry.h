// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace alcove::node {

// By weight.
enum class LogLevel { kDebug, kInfo, kWarn, kError };

constexpr std::string_view level_name(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarn:
      return "warn";
    case LogLevel::kError:
      return "error";
  }
  return "info";
}

// One line of a sandbox's log. `fields` has at least "logger" ("sandbox" or "process") and
// "event_type". All texts are UTF-8.
struct LogEntry {
  WallTime time;
  LogLevel level = LogLevel::kInfo;
  std::string message;
  std::map<std::string, std::string> fields;
};

// Oldest first.
using Log = std::vector<LogEntry>;

// How the log of an ended sandbox is kept. Of a log that is too long the oldest lines about
// processes are left out.
std::string encode_log(const Log& log, size_t max_bytes);
Result<Log> decode_log(std::string_view text);

}  // namespace alcove::node
