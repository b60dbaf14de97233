// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace alcove::store {

// How values that SQLite has no type for are kept in a column: times as microseconds since 1970,
// lists and maps as JSON text.
int64_t to_column(WallTime time);
WallTime time_from_column(int64_t microseconds);

std::string to_column(const std::vector<std::string>& list);
Result<std::vector<std::string>> list_from_column(std::string_view text);

std::string to_column(const std::map<std::string, std::string>& map);
Result<std::map<std::string, std::string>> map_from_column(std::string_view text);

}  // namespace alcove::store
