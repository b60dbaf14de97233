// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/errors.h"
#include "api/idempotency.h"
#include "api/key_ring.h"
#include "api/kills_under_way.h"
#include "api/readiness.h"
#include "api/settings.h"
#include "api/template_catalog.h"
#include "base/clock.h"
#include "http/message.h"
#include "net/task.h"
#include "node/node.h"

namespace alcove::api {

// What the handlers work with; shared by all event loops.
struct Services {
  node::Node& node;
  const Clock& clock;
  TemplateCatalog& templates;
  const Readiness& readiness;
  Settings settings;
  KillsUnderWay kills;
  KeyedCreates keyed_creates;
};

// One request that was routed and let in.
struct Call {
  const http::RequestHead& head;
  // The key that was presented, and whom it stands for. Empty on routes open to everyone.
  std::string key;
  Principal principal;
  // The decoded path segments that stand where the route has {...}.
  std::vector<std::string> parameters;
  std::string body;

  TemplateCatalog::Viewer viewer() const {
    return {.team = principal.team, .team_name = principal.team_name};
  }
};

// Handlers only read `call`, which outlives the task.
using RouteHandler = Task<http::Response> (*)(Services& services, const Call& call);

// The caller's running sandbox that the first path parameter names: 400 for an impossible id, 404
// for an unknown one and for another team's, 503 for one of which nobody knows yet.
ApiResult<node::LiveSandboxPtr> find_own_sandbox(const Services& services, const Call& call);
ApiError sandbox_not_found(std::string_view id);
// Of a sandbox that does not run, as far as anybody knows: 404 or 503.
ApiError sandbox_missing(const Services& services, const Call& call, const SandboxId& id);

// Logs what went wrong and says 500: details of the machine are not the client's business. Never
// 502, 503 or 504, upon which clients would repeat a request that may have been carried out.
ApiError internal_error(std::string_view doing, const Error& error);

}  // namespace alcove::api
