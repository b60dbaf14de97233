// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include "api/services.h"

namespace alcove::api {

// GET /templates: oldest first.
Task<http::Response> list_templates(Services& services, const Call& call);
// GET /templates/aliases/{reference}: whether a template of that name can be used.
Task<http::Response> find_template_by_alias(Services& services, const Call& call);
// GET /snapshots: there are none so far.
Task<http::Response> list_snapshots(Services& services, const Call& call);
// GET /teams: the caller's own team, with the key that was used.
Task<http::Response> list_teams(Services& services, const Call& call);
// GET /health: open to everyone.
Task<http::Response> get_health(Services& services, const Call& call);

}  // namespace alcove::api
