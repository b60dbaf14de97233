// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/services.h"

#include "base/log.h"
#include "base/strings.h"

namespace alcove::api {

ApiError sandbox_not_found(std::string_view id) {
  return ApiError{404, cat("sandbox '", id, "' was not found")};
}

ApiError sandbox_missing(const Services& services, const Call& call, const SandboxId& id) {
  if (services.node.find_unclear(id) != call.principal.team) return sandbox_not_found(id.str());
  return ApiError{503,
                  cat("sandbox '", id.str(), "' could not be taken over yet; it is tried again"),
                  "sandbox_unclear"};
}

ApiResult<node::LiveSandboxPtr> find_own_sandbox(const Services& services, const Call& call) {
  const std::string& text = call.parameters.at(0);
  const auto id = parse_sandbox_id(text);
  if (!id) return refuse(400, id.error().message());
  node::LiveSandboxPtr sandbox = services.node.find(*id);
  if (sandbox == nullptr || !sandbox->running() || sandbox->record().team != call.principal.team) {
    return refuse(sandbox_missing(services, call, *id));
  }
  return sandbox;
}

ApiError internal_error(std::string_view doing, const Error& error) {
  log_error(cat(doing, ": ", error.message()));
  return ApiError{500, cat(doing, " failed; the server's log says why"), "internal_server_error"};
}

}  // namespace alcove::api
