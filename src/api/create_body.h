// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "api/errors.h"
#include "api/template_reference.h"

namespace alcove::api {

// v1: POST /sandboxes, v2: POST /v2/sandboxes. They differ in defaults.
enum class Generation { kV1, kV2 };

// The body of a create, checked.
struct CreateBody {
  TemplateReference template_reference;
  // As the caller wrote it, for messages.
  std::string template_text;
  std::chrono::seconds timeout{};
  std::map<std::string, std::string> metadata;
  std::map<std::string, std::string> env_vars;
  bool secure = false;
  bool public_traffic = true;
  std::optional<bool> allow_internet_access;
  // What was given of `network`, as JSON; empty if it was not given.
  std::string network_json;
  // Names of the MCP servers, as a JSON list; empty if `mcp` was not given.
  std::string mcp_json;
};

// No field is ignored: what is not built yet is refused by name.
ApiResult<CreateBody> parse_create_body(std::string_view body, Generation generation,
                                        std::chrono::seconds max_timeout);

// 400 for more than the longest time a sandbox may live.
ApiResult<void> check_max_timeout(std::chrono::seconds timeout, std::chrono::seconds maximum);

}  // namespace alcove::api
