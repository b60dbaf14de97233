// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace alcove::agent {

// The version of the protocol that the agent speaks, as clients compare it.
inline constexpr std::string_view kEnvdVersion = "0.6.13";

// The header that proves to the agent that a request comes from the host.
inline constexpr std::string_view kControlHeader = "X-Alcove-Control";

// The body of POST /init: who the sandbox is and how it is set up (protocol/envd.md 3.2 and our
// own fields).
struct InitRequest {
  // Orders repeated inits: an older one changes nothing. Absent: always applied.
  std::optional<WallTime> timestamp;
  // Replaces all variables of an earlier init; absent: they stay.
  std::optional<std::map<std::string, std::string>> env_vars;
  // Absent: no token is needed any more.
  std::optional<std::string> access_token;
  std::optional<std::string> default_user;
  std::optional<std::string> default_workdir;

  // Ours: the identity shown inside, and the secret that later inits must carry in kControlHeader.
  // The first init that has one fixes it.
  std::optional<std::string> sandbox_id;
  std::optional<std::string> template_id;
  std::optional<std::string> team_id;
  std::optional<std::string> control_token;
};

std::string encode_init(const InitRequest& request);
// An empty body is an empty object. Unknown fields are ignored; those of the protocol that this
// agent cannot serve (volumeMounts, caBundle) are kInvalidArgument if they ask for something.
Result<InitRequest> decode_init(std::string_view body);

}  // namespace alcove::agent
