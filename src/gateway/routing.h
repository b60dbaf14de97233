// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "base/ids.h"
#include "http/message.h"

namespace alcove::gateway {

// The agent's port inside every sandbox.
inline constexpr uint16_t kAgentPort = 49983;

// The control plane answers.
struct ToApi {};
// Traffic for a port of a sandbox (which may not exist).
struct ToSandbox {
  SandboxId id;
  uint16_t port = 0;
  // "/_sandbox/<id>/<port>" where the path names the sandbox; else empty.
  std::string prefix;
};
// A signed file URL on the shared origin: no host name and no header tells the sandbox, only the
// signature does.
struct ToFileUrl {};
// Neither: answered with this status and plain text.
struct Refusal {
  int status = 400;
  std::string text;
};

using Route = std::variant<ToApi, ToSandbox, ToFileUrl, Refusal>;

struct RoutingOptions {
  // The domain whose subdomains are ours ("alcove.localhost"), lower-case, without a port; empty
  // if none is set, then every `api.<rest>` counts as the API's host.
  std::string domain;
};

// Where one request goes. Decided for each request on its own, because one connection of a client
// carries API calls and traffic of several sandboxes in turn.
//
// 1. A Host `<port>-<id>[-<suffix>].<rest>` is that sandbox's, whatever the headers say.
// 2. A Host `api.<domain>` is the API, but for rule 4.
// 3. Else the headers E2b-Sandbox-Id and E2b-Sandbox-Port: any port but the agent's is the
//    sandbox's. The agent's port is the sandbox's unless the path is one of the API's: Python
//    2.22.0 sends both headers on POST /sandboxes/{id}/connect.
// 4. Else a path `/_sandbox/<id>/<port>/...`: that sandbox's.
// 5. Else the API, but for names in our own domain: a host there that is neither the API's nor a
//    sandbox's is invalid, like one that only looks like a sandbox's.
Route route(const http::RequestHead& request, const RoutingOptions& options);

}  // namespace alcove::gateway
