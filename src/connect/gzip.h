// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace alcove::connect {

// Unpacks a gzip file held in memory (several members are joined). kInvalidArgument if broken,
// kResourceExhausted if the content is longer than `limit`.
Result<std::string> gunzip(std::string_view packed, uint64_t limit);

}  // namespace alcove::connect
