// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace alcove {

// RFC 3339 in UTC with exactly six fraction digits: "2026-11-16T18:16:51.000123Z".
std::string format_rfc3339(WallTime time);

// RFC 3339 with `Z` or a numeric offset and 0 to 9 fraction digits (cut to microseconds).
std::optional<WallTime> parse_rfc3339(std::string_view text);

}  // namespace alcove
