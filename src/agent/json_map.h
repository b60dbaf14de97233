// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <map>
#include <string>

namespace alcove::agent {

// Appends {"key":"value",...}.
void append_json_map(std::string& out, const std::map<std::string, std::string>& map);

}  // namespace alcove::agent
