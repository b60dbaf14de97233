// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/sandboxes_create.h"

#include <utility>

#include <boost/json/value.hpp>

#include "api/create_body.h"
#include "api/json_reply.h"
#include "api/sandbox_view.h"
#include "base/log.h"
#include "base/strings.h"

namespace alcove::api {
namespace {

ApiResult<CatalogEntryPtr> find_template(const Services& services, const Call& call,
                                         const CreateBody& create) {
  const TemplateReference& reference = create.template_reference;
  CatalogEntryPtr entry = services.templates.find(reference, call.viewer());
  if (entry == nullptr) {
    // Nothing was started, so the client may try again.
    if (const auto pending = services.readiness.pending()) {
      return refuse(503, cat("The server is not ready yet: ", *pending));
    }
    return refuse(404, cat("template '", create.template_text, "' not found"));
  }
  if (reference.tag && !entry->has_tag(*reference.tag)) {
    return refuse(404, cat("tag '", *reference.tag, "' does not exist for template '",
                           reference.full_name(), "'"));
  }
  return entry;
}

node::CreateRequest make_request(const Call& call, SandboxId id, CreateBody create,
                                 const CatalogEntry& entry) {
  using Access = node::CreateRequest::Access;
  node::CreateRequest request;
  request.id = std::move(id);
  request.team = call.principal.team;
  request.template_record = entry.record;
  request.timeout = create.timeout;
  request.metadata = std::move(create.metadata);
  request.env_vars = std::move(create.env_vars);
  request.agent_access = create.secure ? Access::kToken : Access::kOpen;
  request.traffic_access = create.public_traffic ? Access::kOpen : Access::kToken;
  request.allow_internet_access = create.allow_internet_access;
  request.network_json = std::move(create.network_json);
  request.mcp_json = std::move(create.mcp_json);
  return request;
}

http::Response create_failed(const Error& error) {
  // The node says kUnavailable only before it has started anything: a clean refusal, the one kind
  // of failure that a client may answer by trying again.
  if (error.code() == Code::kUnavailable) {
    log_warn(cat("create sandbox: ", error.message()));
    return error_response(
        {503, cat("Failed to place sandbox: ", error.message()), "sandbox_capacity_unavailable"});
  }
  log_error(cat("create sandbox: ", error.message()));
  return final_error_response(
      {500, "Failed to place sandbox: it could not be started; the server's log says why",
       "sandbox_create_failed"});
}

Task<http::Response> create_new(Services& services, const Call& call, Generation generation,
                                SandboxId id) {
  auto create = parse_create_body(call.body, generation, services.settings.max_timeout);
  if (!create) co_return error_response(create.error());
  const auto entry = find_template(services, call, *create);
  if (!entry) co_return error_response(entry.error());
  auto request = make_request(call, std::move(id), *std::move(create), **entry);
  const auto sandbox = co_await services.node.create(std::move(request));
  if (!sandbox) co_return create_failed(sandbox.error());
  co_return created((*sandbox)->record(), services.settings);
}

Task<http::Response> create_sandbox(Services& services, const Call& call, Generation generation) {
  const auto key = read_idempotency_key(call.head.headers);
  if (!key) co_return error_response(key.error());
  if (!*key) co_return co_await create_new(services, call, generation, make_sandbox_id());
  const std::string_view route = generation == Generation::kV1 ? "v1" : "v2";
  co_return co_await services.keyed_creates.answer(
      call.principal.team, **key, create_fingerprint(route, call.body),
      [&](SandboxId id) { return create_new(services, call, generation, std::move(id)); });
}

}  // namespace

Task<http::Response> create_sandbox_v1(Services& services, const Call& call) {
  return create_sandbox(services, call, Generation::kV1);
}

Task<http::Response> create_sandbox_v2(Services& services, const Call& call) {
  return create_sandbox(services, call, Generation::kV2);
}

}  // namespace alcove::api
