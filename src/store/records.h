// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"

namespace alcove::store {

struct Team {
  TeamId id;
  std::string name;
  WallTime created_at;
};

// An API key; of the key itself only its SHA-256 is kept.
struct ApiKey {
  KeyId id;
  TeamId team;
  std::string name;
  std::string sha256_hex;
  // First and last characters, for showing which key it is.
  std::string mask_prefix;
  std::string mask_suffix;
  WallTime created_at;
};

// A template and the build that a create of it uses now.
struct Template {
  TemplateId id;
  // The name under which it is created ("base"); aliases are further names.
  std::string name;
  std::vector<std::string> aliases;
  BuildId build;
  // The recipe's hash: what the layers are kept by.
  std::string build_hash;
  // The build as JSON (layers, limits, user ...): template/build.h reads it.
  std::string build_json;
  // Nobody's (empty): every team may use it.
  TeamId team;
  WallTime updated_at;
  // When it was first put; later puts do not change it.
  WallTime created_at{};
};

// A sandbox that exists: everything needed to show it and to find it again after a restart. A
// killed sandbox has no record.
struct Sandbox {
  SandboxId id;
  TeamId team;
  TemplateId template_id;
  std::string template_alias;
  BuildId build;
  std::string build_hash;
  WallTime started_at;
  WallTime end_at;
  uint32_t vcpu_count = 0;
  uint64_t memory_bytes = 0;
  uint64_t disk_bytes = 0;
  std::map<std::string, std::string> metadata;
  // True if the agent demands `envd_token`.
  bool secure = false;
  std::string envd_token;
  // Empty when public traffic is allowed.
  std::string traffic_token;
  // Absent: the caller did not say.
  std::optional<bool> allow_internet_access;
  // The `network` object of the create request as JSON, empty if none.
  std::string network_json;
  // Names of the MCP servers asked for, as JSON; empty if none.
  std::string mcp_json;
  // Driver name and its own record (sandbox::Machine::record()).
  std::string driver;
  std::string machine_record;
  // Content hash of the agent program that runs as pid 1.
  std::string agent_hash;
};

// A sandbox that is over, for as long as its log is kept.
struct EndedSandbox {
  SandboxId id;
  TeamId team;
  WallTime ended_at;
  // node/log_entry.h reads it.
  std::string log;
};

// A create that its caller gave a key, so that repeating it makes no second sandbox.
struct KeyedCreate {
  TeamId team;
  std::string key;
  // What was asked for, as a hash.
  std::string fingerprint;
  // The one that it makes, chosen before anything is started. Empty in records of older versions.
  SandboxId sandbox;
  // The body of the answer; absent: under way, or the server ended before it was known.
  std::optional<std::string> answer;
  WallTime begun_at;
};

}  // namespace alcove::store
