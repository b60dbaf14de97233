// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include "api/services.h"

namespace alcove::api {

// Routes of the protocol that this server does not have yet. Each says so by name instead of
// looking like an unknown route or a missing sandbox.

// Those about a sandbox: an unknown sandbox is still a 404.
Task<http::Response> refuse_pause(Services& services, const Call& call);
// Nothing is ever paused here, so that what is found is running: 409, as the protocol has it.
Task<http::Response> refuse_resume(Services& services, const Call& call);
Task<http::Response> refuse_fork(Services& services, const Call& call);
Task<http::Response> refuse_snapshot(Services& services, const Call& call);
Task<http::Response> refuse_network_update(Services& services, const Call& call);

// Features that are off: 403, as the protocol has it for them.
Task<http::Response> refuse_template_builds(Services& services, const Call& call);
Task<http::Response> refuse_template_tags(Services& services, const Call& call);

Task<http::Response> refuse_volumes(Services& services, const Call& call);
Task<http::Response> refuse_secrets(Services& services, const Call& call);

}  // namespace alcove::api
