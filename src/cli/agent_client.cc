// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/agent_client.h"

#include "base/base64.h"
#include "base/strings.h"
#include "cli/printable.h"
#include "connect/client.h"
#include "connect/json_codec.h"
#include "http/url.h"

namespace alcove::cli {
namespace {

namespace json = boost::json;

constexpr std::string_view kAgentPort = "49983";

}  // namespace

Error call_error(const http::Response& response) {
  Error error = connect::parse_error(response.body);
  if (error.code() == Code::kUnknown) return error_of(response);
  return Error(error.code(), printable(error.message()));
}

Task<Result<AgentClient>> AgentClient::open(Server& server, std::string sandbox_id,
                                            std::string user) {
  ALCOVE_CO_TRY_ASSIGN(const ApiReply info, co_await server.call_sandbox("GET", sandbox_id, ""));
  if (!info.body.is_object()) co_return fail(Code::kInternal, "the server's answer is no object");
  const json::object& sandbox = info.body.get_object();
  co_return AgentClient(server.sandboxes(), text_field(sandbox, "sandboxID"),
                        text_field(sandbox, "envdAccessToken"), std::move(user));
}

http::RequestHead AgentClient::head(std::string method, std::string target) const {
  http::RequestHead head;
  head.method = std::move(method);
  head.target = std::move(target);
  head.headers = {{"E2b-Sandbox-Id", id_}, {"E2b-Sandbox-Port", std::string(kAgentPort)}};
  if (!token_.empty()) head.headers.add("X-Access-Token", token_);
  if (!user_.empty()) head.headers.add("Authorization", "Basic " + to_base64(user_ + ":"));
  return head;
}

http::RequestHead AgentClient::call_head(std::string_view method,
                                         std::string_view content_type) const {
  http::RequestHead made = head("POST", cat("/", method));
  made.headers.add("Content-Type", std::string(content_type));
  made.headers.add("Connect-Protocol-Version", "1");
  return made;
}

Task<Result<json::object>> AgentClient::call(std::string_view method, std::string message,
                                             std::optional<std::chrono::seconds> limit) {
  ALCOVE_CO_TRY_ASSIGN(
      const http::Response response,
      co_await http_->fetch(call_head(method, "application/json"), std::move(message), limit));
  if (response.status != 200) co_return fail(call_error(response));
  co_return connect::parse_message(response.body);
}

std::string AgentClient::file_target(std::string_view path) const {
  std::string target = cat("/files?path=", http::percent_encode(path));
  if (!user_.empty()) target += cat("&username=", http::percent_encode(user_));
  return target;
}

}  // namespace alcove::cli
