// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace alcove::cli {

// "734 B", "1.5 MiB", "10 GiB".
std::string format_bytes(uint64_t bytes);
// "42s", "5m", "3h12m", "2d4h": the two largest units.
std::string format_duration(std::chrono::seconds duration);
// An RFC 3339 time as its distance from now: "5m ago", "in 3h12m". The text itself if it is none.
std::string format_when(std::string_view rfc3339, WallTime now);

// "300" (seconds), "90s", "5m", "2h", "1d".
Result<std::chrono::seconds> parse_duration(std::string_view text);

}  // namespace alcove::cli
