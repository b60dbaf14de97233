// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include "api/services.h"

namespace alcove::api {

// GET /sandboxes/{id}/metrics: what it used over time. Empty for a sandbox that is not there, as
// in the original.
Task<http::Response> get_sandbox_metrics(Services& services, const Call& call);
// GET /sandboxes/metrics: the latest of several sandboxes; those not there are left out.
Task<http::Response> get_bulk_metrics(Services& services, const Call& call);

// GET /sandboxes/{id}/logs and GET /v2/sandboxes/{id}/logs: also of a sandbox that ended lately.
Task<http::Response> get_sandbox_logs_v1(Services& services, const Call& call);
Task<http::Response> get_sandbox_logs_v2(Services& services, const Call& call);

}  // namespace alcove::api
