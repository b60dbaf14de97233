// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/units.h"

#include <array>
#include <cstdio>

#include "base/strings.h"
#include "base/time_format.h"

namespace alcove::cli {

std::string format_bytes(uint64_t bytes) {
  if (bytes < 1024) return cat(bytes, " B");
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // 1023.95 would be shown as "1024.0".
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  char number[32];
  std::snprintf(number, sizeof number, "%.1f", value);
  std::string_view shown = number;
  if (shown.ends_with(".0")) shown.remove_suffix(2);
  return cat(shown, " ", kUnits[unit]);
}

std::string format_duration(std::chrono::seconds duration) {
  const auto total = duration.count();
  if (total < 60) return cat(total, "s");
  if (total < 3600)
    return total % 60 == 0 || total >= 600 ? cat(total / 60, "m")
                                           : cat(total / 60, "m", total % 60, "s");
  const auto hours = total / 3600;
  const auto minutes = total % 3600 / 60;
  if (hours < 24) return minutes == 0 ? cat(hours, "h") : cat(hours, "h", minutes, "m");
  return hours % 24 == 0 ? cat(hours / 24, "d") : cat(hours / 24, "d", hours % 24, "h");
}

Result<std::chrono::seconds> parse_duration(std::string_view text) {
  int64_t unit = 1;
  std::string_view number = text;
  if (!text.empty() && (text.back() < '0' || text.back() > '9')) {
    switch (text.back()) {
      case 's':
        break;
      case 'm':
        unit = 60;
        break;
      case 'h':
        unit = 3600;
        break;
      case 'd':
        unit = 86400;
        break;
      default:
        unit = 0;
    }
    number.remove_suffix(1);
  }
  const auto count = parse_number<uint32_t>(number);
  if (!count || unit == 0) {
    return fail(
        Code::kInvalidArgument,
        cat("\"", text, "\" is no duration: expected seconds, or one like 90s, 5m, 2h, 1d"));
  }
  return std::chrono::seconds(*count * unit);
}

std::string format_when(std::string_view rfc3339, WallTime now) {
  const auto time = parse_rfc3339(rfc3339);
  if (!time) return std::string(rfc3339);
  using std::chrono::seconds;
  const bool past = *time <= now;
  const auto distance = std::chrono::duration_cast<seconds>(past ? now - *time : *time - now);
  return past ? format_duration(distance) + " ago" : "in " + format_duration(distance);
}

}  // namespace alcove::cli
