// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace alcove::agent {

// "Sun, 06 Nov 1994 08:49:37 GMT" for seconds since the epoch.
std::string format_http_date(int64_t unix_seconds);
// The same format only; nothing for others.
std::optional<int64_t> parse_http_date(std::string_view text);

}  // namespace alcove::agent
