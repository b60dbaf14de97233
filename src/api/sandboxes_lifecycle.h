// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include "api/services.h"

namespace alcove::api {

// DELETE /sandboxes/{id}
Task<http::Response> kill_sandbox(Services& services, const Call& call);
// POST /sandboxes/{id}/timeout: sets the end, earlier or later than now in force.
Task<http::Response> set_sandbox_timeout(Services& services, const Call& call);
// POST /sandboxes/{id}/refreshes: only ever moves the end later.
Task<http::Response> refresh_sandbox(Services& services, const Call& call);
// POST /sandboxes/{id}/connect and POST /v2/sandboxes/{id}/connect: the same, and shows the
// sandbox.
Task<http::Response> connect_sandbox_v1(Services& services, const Call& call);
Task<http::Response> connect_sandbox_v2(Services& services, const Call& call);

}  // namespace alcove::api
