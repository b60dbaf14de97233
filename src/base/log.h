// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace alcove {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

// Where log lines go. Set once in main, before threads start; the default writes
// "<level> <message>" to stderr. Library code does not log above debug: the layer that handles an
// error logs it once.
void set_log_sink(std::function<void(LogLevel, std::string_view)> sink);
void set_log_level(LogLevel minimum);

void log_debug(std::string_view message);
void log_info(std::string_view message);
void log_warn(std::string_view message);
void log_error(std::string_view message);

}  // namespace alcove
