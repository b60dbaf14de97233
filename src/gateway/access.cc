// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/access.h"

#include "gateway/error_page.h"
#include "gateway/routing.h"
#include "gateway/target.h"

namespace alcove::gateway {

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  // volatile: the compiler may not stop at the first difference.
  volatile unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

std::optional<http::Response> refuse_access(const http::RequestHead& request,
                                            const store::Sandbox& sandbox, uint16_t port) {
  if (port == kAgentPort) {
    const std::string_view path = split_target(request.target).path();
    if (is_agent_control_path(path)) return make_control_path_refusal(path);
    return {};
  }
  if (sandbox.traffic_token.empty()) return {};
  const auto token = request.headers.get("e2b-traffic-access-token");
  if (!token || token->empty()) {
    return make_error_page(Trouble::kTrafficTokenMissing, request, sandbox.id, port);
  }
  if (!equal_in_constant_time(*token, sandbox.traffic_token)) {
    return make_error_page(Trouble::kTrafficTokenWrong, request, sandbox.id, port);
  }
  return {};
}

}  // namespace alcove::gateway
