// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include "api/services.h"

namespace alcove::api {

// GET /sandboxes/{id}
Task<http::Response> get_sandbox(Services& services, const Call& call);
// GET /sandboxes: those that run, newest first.
Task<http::Response> list_sandboxes_v1(Services& services, const Call& call);
// GET /v2/sandboxes: filters and pages.
Task<http::Response> list_sandboxes_v2(Services& services, const Call& call);

}  // namespace alcove::api
