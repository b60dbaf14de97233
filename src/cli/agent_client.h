// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <boost/json/object.hpp>

#include "base/result.h"
#include "cli/server.h"
#include "http/message.h"
#include "net/task.h"

namespace alcove::cli {

// The agent of one sandbox, spoken to as the SDKs do. Everything it answers is untrusted.
class AgentClient {
 public:
  // Asks the API for the sandbox's token. `user` is who commands run as and whom files belong to;
  // empty: the template's own.
  static Task<Result<AgentClient>> open(Server& server, std::string sandbox_id, std::string user);

  HttpClient& http() { return *http_; }
  const std::string& user() const { return user_; }

  // A request's head with everything that names sandbox and user.
  http::RequestHead head(std::string method, std::string target) const;
  // The head of a call, whose body is `application/connect+json` for streams.
  http::RequestHead call_head(std::string_view method, std::string_view content_type) const;

  // A unary call: `method` is "process.Process/SendInput". No limit: for calls that the process
  // inside may hold up.
  Task<Result<boost::json::object>> call(std::string_view method, std::string message,
                                         std::optional<std::chrono::seconds> limit = kRequestLimit);

  // Target of an upload or download.
  std::string file_target(std::string_view path) const;

 private:
  AgentClient(HttpClient& http, std::string id, std::string token, std::string user)
      : http_(&http), id_(std::move(id)), token_(std::move(token)), user_(std::move(user)) {}

  HttpClient* http_;
  std::string id_;
  std::string token_;
  std::string user_;
};

// The error of a call that was not answered with 200: Connect's shape or the plain one.
Error call_error(const http::Response& response);

}  // namespace alcove::cli
