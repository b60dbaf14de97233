// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "api/errors.h"

namespace alcove::api {

// Pairs that a sandbox's metadata must all contain.
using MetadataFilter = std::map<std::string, std::string>;

// From the value of the `metadata` query parameter after the ordinary decoding of a query. Clients
// encode each key and value, join them as a form, and encode that once more.
ApiResult<MetadataFilter> parse_metadata_filter(std::string_view value);

bool matches(const MetadataFilter& filter, const std::map<std::string, std::string>& metadata);

}  // namespace alcove::api
