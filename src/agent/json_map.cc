// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/json_map.h"

#include "connect/json_writer.h"

namespace alcove::agent {

void append_json_map(std::string& out, const std::map<std::string, std::string>& map) {
  out += '{';
  bool first = true;
  for (const auto& [key, value] : map) {
    if (!first) out += ',';
    first = false;
    connect::append_json_string(out, key);
    out += ':';
    connect::append_json_string(out, value);
  }
  out += '}';
}

}  // namespace alcove::agent
