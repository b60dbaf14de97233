// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/access.h"

#include "base/sha256.h"
#include "gateway/error_page.h"
#include "gateway/routing.h"
#include "gateway/target.h"

namespace alcove::gateway {

std::optional<http::Response> refuse_access(const http::RequestHead& request, std::string_view path,
                                            const store::Sandbox& sandbox, uint16_t port) {
  if (port == kAgentPort) {
    if (is_agent_control_path(path)) return make_control_path_refusal(path);
    return {};
  }
  if (sandbox.traffic_token.empty()) return {};
  const auto token = request.headers.get("e2b-traffic-access-token");
  if (!token || token->empty()) {
    return make_error_page(Trouble::kTrafficTokenMissing, request, sandbox.id, port);
  }
  if (!equal_constant_time(*token, sandbox.traffic_token)) {
    return make_error_page(Trouble::kTrafficTokenWrong, request, sandbox.id, port);
  }
  return {};
}

}  // namespace alcove::gateway
