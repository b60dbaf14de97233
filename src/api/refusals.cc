// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/refusals.h"

namespace alcove::api {
namespace {

Task<http::Response> refuse_for_sandbox(Services& services, const Call& call,
                                        std::string_view feature) {
  const auto sandbox = find_own_sandbox(services, call);
  co_return error_response(sandbox ? not_available(feature) : sandbox.error());
}

}  // namespace

Task<http::Response> refuse_pause(Services& services, const Call& call) {
  return refuse_for_sandbox(services, call, "pause");
}

Task<http::Response> refuse_resume(Services& services, const Call& call) {
  const auto sandbox = find_own_sandbox(services, call);
  if (!sandbox) co_return error_response(sandbox.error());
  co_return error_response({409, "The sandbox is running already."});
}

Task<http::Response> refuse_fork(Services& services, const Call& call) {
  return refuse_for_sandbox(services, call, "fork");
}

Task<http::Response> refuse_snapshot(Services& services, const Call& call) {
  return refuse_for_sandbox(services, call, "snapshot");
}

Task<http::Response> refuse_network_update(Services& services, const Call& call) {
  return refuse_for_sandbox(services, call, "network");
}

Task<http::Response> refuse_template_builds(Services&, const Call&) {
  co_return error_response(not_available("building a template"));
}

Task<http::Response> refuse_template_tags(Services&, const Call&) {
  co_return error_response(not_available("tagging a template"));
}

Task<http::Response> refuse_volumes(Services&, const Call&) {
  co_return error_response({403, "Volumes are not enabled."});
}

Task<http::Response> refuse_secrets(Services&, const Call&) {
  http::Response response = error_response({403, "Secrets are not enabled."});
  // Every answer of these routes, the refusals too.
  response.headers.set("Cache-Control", "no-store");
  co_return response;
}

}  // namespace alcove::api
