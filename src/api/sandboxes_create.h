// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include "api/services.h"

namespace alcove::api {

// POST /sandboxes and POST /v2/sandboxes.
Task<http::Response> create_sandbox_v1(Services& services, const Call& call);
Task<http::Response> create_sandbox_v2(Services& services, const Call& call);

}  // namespace alcove::api
