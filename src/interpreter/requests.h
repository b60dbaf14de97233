// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace alcove::interpreter {

// Bodies of requests. Absent, null and empty mean the same. An error's message is the JSON that
// the client gets with status 422.

struct ExecuteRequest {
  std::string code;
  std::string context_id;
  std::string language;
  std::map<std::string, std::string> env_vars;
};
Result<ExecuteRequest> parse_execute_request(std::string_view body);

struct ContextRequest {
  std::string language;
  std::string cwd;
};
Result<ContextRequest> parse_context_request(std::string_view body);

}  // namespace alcove::interpreter
