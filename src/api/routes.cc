// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/collections.h"
#include "api/refusals.h"
#include "api/router.h"
#include "api/sandboxes_create.h"
#include "api/sandboxes_lifecycle.h"
#include "api/sandboxes_observe.h"
#include "api/sandboxes_read.h"

namespace alcove::api {
namespace {

constexpr Route kRoutes[] = {
    {"GET", "/health", Access::kOpen, get_health},

    {"POST", "/sandboxes", Access::kApiKey, create_sandbox_v1},
    {"POST", "/v2/sandboxes", Access::kApiKey, create_sandbox_v2},
    {"GET", "/sandboxes", Access::kApiKey, list_sandboxes_v1},
    {"GET", "/v2/sandboxes", Access::kApiKey, list_sandboxes_v2},
    {"GET", "/sandboxes/{id}", Access::kApiKey, get_sandbox},
    {"DELETE", "/sandboxes/{id}", Access::kApiKey, kill_sandbox},
    {"POST", "/sandboxes/{id}/timeout", Access::kApiKey, set_sandbox_timeout},
    {"POST", "/sandboxes/{id}/refreshes", Access::kApiKey, refresh_sandbox},
    {"POST", "/sandboxes/{id}/connect", Access::kApiKey, connect_sandbox_v1},
    {"POST", "/v2/sandboxes/{id}/connect", Access::kApiKey, connect_sandbox_v2},

    {"GET", "/sandboxes/{id}/metrics", Access::kApiKey, get_sandbox_metrics},
    {"GET", "/sandboxes/metrics", Access::kApiKey, get_bulk_metrics},
    {"GET", "/sandboxes/{id}/logs", Access::kApiKey, get_sandbox_logs_v1},
    {"GET", "/v2/sandboxes/{id}/logs", Access::kApiKey, get_sandbox_logs_v2},

    {"POST", "/sandboxes/{id}/pause", Access::kApiKey, refuse_pause},
    {"POST", "/sandboxes/{id}/resume", Access::kApiKey, refuse_resume},
    {"POST", "/sandboxes/{id}/fork", Access::kApiKey, refuse_fork},
    {"POST", "/sandboxes/{id}/snapshots", Access::kApiKey, refuse_snapshot},
    {"PUT", "/sandboxes/{id}/network", Access::kApiKey, refuse_network_update},

    {"GET", "/snapshots", Access::kApiKey, list_snapshots},
    {"GET", "/templates", Access::kApiKey, list_templates},
    {"GET", "/templates/aliases/{reference}", Access::kApiKey, find_template_by_alias},
    {"POST", "/v3/templates", Access::kApiKey, refuse_template_builds},
    {"POST", "/v2/templates/{id}/builds/{build}", Access::kApiKey, refuse_template_builds},
    {"GET", "/templates/{id}/builds/{build}/status", Access::kApiKey, refuse_template_builds},
    {"GET", "/templates/{id}/files/{hash}", Access::kApiKey, refuse_template_builds},
    {"GET", "/templates/{id}/tags", Access::kApiKey, refuse_template_tags},
    {"POST", "/templates/tags", Access::kApiKey, refuse_template_tags},
    {"DELETE", "/templates/tags", Access::kApiKey, refuse_template_tags},
    {"GET", "/teams", Access::kApiKeyOrBearer, list_teams},

    {"GET", "/volumes", Access::kApiKey, refuse_volumes},
    {"POST", "/volumes", Access::kApiKey, refuse_volumes},
    {"GET", "/volumes/{id}", Access::kApiKey, refuse_volumes},
    {"DELETE", "/volumes/{id}", Access::kApiKey, refuse_volumes},
    {"GET", "/secrets", Access::kApiKey, refuse_secrets},
    {"POST", "/secrets", Access::kApiKey, refuse_secrets},
    {"GET", "/secrets/{id}", Access::kApiKey, refuse_secrets},
    {"POST", "/secrets/{id}", Access::kApiKey, refuse_secrets},
    {"DELETE", "/secrets/{id}", Access::kApiKey, refuse_secrets},
};

}  // namespace

std::span<const Route> routes() { return kRoutes; }

}  // namespace alcove::api
