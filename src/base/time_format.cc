// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "base/time_format.h"

#include <cstdio>

#include "base/strings.h"

namespace alcove {
namespace {

using std::chrono::microseconds;

// Takes exactly `digits` digits off the front.
std::optional<int> take_number(std::string_view& text, size_t digits) {
  if (text.size() < digits) return {};
  const std::string_view part = text.substr(0, digits);
  if (part.find_first_not_of("0123456789") != std::string_view::npos) return {};
  text.remove_prefix(digits);
  return parse_number<int>(part);
}

bool take(std::string_view& text, char expected) {
  if (text.empty() || (text[0] | 0x20) != (expected | 0x20)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::string format_rfc3339(WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<microseconds>(time - day));
  char out[40];
  std::snprintf(out, sizeof out, "%04d-%02u-%02uT%02d:%02d:%02d.%06dZ", int(date.year()),
                unsigned(date.month()), unsigned(date.day()), int(clock.hours().count()),
                int(clock.minutes().count()), int(clock.seconds().count()),
                int(clock.subseconds().count()));
  return out;
}

std::optional<WallTime> parse_rfc3339(std::string_view text) {
  const auto year = take_number(text, 4);
  if (!year || !take(text, '-')) return {};
  const auto month = take_number(text, 2);
  if (!month || !take(text, '-')) return {};
  const auto day = take_number(text, 2);
  if (!day || !(take(text, 'T') || take(text, ' '))) return {};
  const auto hour = take_number(text, 2);
  if (!hour || !take(text, ':')) return {};
  const auto minute = take_number(text, 2);
  if (!minute || !take(text, ':')) return {};
  const auto second = take_number(text, 2);
  if (!second || *hour > 23 || *minute > 59 || *second > 60) return {};

  int fraction = 0;
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    size_t digits = 0;
    while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
      if (digits < 6) fraction = fraction * 10 + (text[digits] - '0');
      ++digits;
    }
    if (digits == 0 || digits > 9) return {};
    for (size_t i = digits; i < 6; ++i) fraction *= 10;
    text.remove_prefix(digits);
  }

  int offset_minutes = 0;
  if (text == "Z" || text == "z") {
    text = {};
  } else if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    const int sign = text[0] == '+' ? 1 : -1;
    text.remove_prefix(1);
    const auto hours = take_number(text, 2);
    if (!hours || !take(text, ':')) return {};
    const auto minutes = take_number(text, 2);
    if (!minutes || *hours > 23 || *minutes > 59 || !text.empty()) return {};
    offset_minutes = sign * (*hours * 60 + *minutes);
  } else {
    return {};
  }

  const std::chrono::year_month_day date{std::chrono::year{*year},
                                         std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)}};
  if (!date.ok()) return {};
  return WallTime(std::chrono::sys_days(date)) + std::chrono::hours(*hour) +
         std::chrono::minutes(*minute - offset_minutes) + std::chrono::seconds(*second) +
         microseconds(fraction);
}

}  // namespace alcove
