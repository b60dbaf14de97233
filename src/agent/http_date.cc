// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/http_date.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "base/strings.h"

namespace alcove::agent {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr int64_t kLastSecond = 253'402'300'799;  // of the year 9999

std::string digits(int64_t value, size_t width) {
  std::string text = std::to_string(value);
  if (text.size() < width) text.insert(0, width - text.size(), '0');
  return text;
}

}  // namespace

std::string format_http_date(int64_t unix_seconds) {
  const std::chrono::seconds time(std::clamp<int64_t>(unix_seconds, 0, kLastSecond));
  const std::chrono::sys_days day(std::chrono::floor<std::chrono::days>(time));
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day.time_since_epoch());
  return cat(kDays[std::chrono::weekday(day).c_encoding()], ", ", digits(unsigned{date.day()}, 2),
             " ", kMonths[unsigned{date.month()} - 1], " ", digits(int{date.year()}, 4), " ",
             digits(clock.hours().count(), 2), ":", digits(clock.minutes().count(), 2), ":",
             digits(clock.seconds().count(), 2), " GMT");
}

std::optional<int64_t> parse_http_date(std::string_view text) {
  // "Sun, 06 Nov 1994 08:49:37 GMT": every field has its place.
  if (text.size() != 29 || text.substr(25) != " GMT" || text.substr(3, 2) != ", ") return {};
  const auto month = std::find(kMonths.begin(), kMonths.end(), text.substr(8, 3));
  const auto day = parse_number<unsigned>(text.substr(5, 2));
  const auto year = parse_number<int>(text.substr(12, 4));
  const auto hour = parse_number<unsigned>(text.substr(17, 2));
  const auto minute = parse_number<unsigned>(text.substr(20, 2));
  const auto second = parse_number<unsigned>(text.substr(23, 2));
  if (month == kMonths.end() || !day || !year || !hour || !minute || !second) return {};
  if (text[7] != ' ' || text[11] != ' ' || text[16] != ' ' || text[19] != ':' || text[22] != ':') {
    return {};
  }
  const std::chrono::year_month_day date(
      std::chrono::year(*year),
      std::chrono::month(static_cast<unsigned>(month - kMonths.begin()) + 1),
      std::chrono::day(*day));
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) return {};
  return std::chrono::sys_days(date).time_since_epoch() / std::chrono::seconds(1) + *hour * 3600 +
         *minute * 60 + *second;
}

}  // namespace alcove::agent
