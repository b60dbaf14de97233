// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "base/result.h"
#include "cli/client_settings.h"
#include "cli/http_client.h"
#include "http/message.h"
#include "net/task.h"

namespace alcove::cli {

struct ApiReply {
  boost::json::value body;  // null for an answer without one
  http::Headers headers;
};

// A server as its clients see it: the REST API, and sandboxes behind their origin.
class Server {
 public:
  static Result<Server> open(const ClientSettings& settings);

  // One call of the API. An answer that is not 2xx is an error with the server's text and, for a
  // key that is refused, the remedy.
  Task<Result<ApiReply>> call(std::string method, std::string target,
                              std::optional<boost::json::value> body = {});
  // A call about one sandbox, `/sandboxes/<id>` and `target` behind it; the error for an id that
  // nobody has says how to find one.
  Task<Result<ApiReply>> call_sandbox(std::string method, std::string id, std::string target,
                                      std::optional<boost::json::value> body = {});

  HttpClient& sandboxes() { return sandboxes_; }

 private:
  Server(Endpoint api, Endpoint sandboxes, std::string key)
      : api_(std::move(api)), sandboxes_(std::move(sandboxes)), key_(std::move(key)) {}

  HttpClient api_;
  HttpClient sandboxes_;
  std::string key_;
};

// The error that a plain (not Connect) answer stands for: its `message`, or the status if it has
// none.
Error error_of(const http::Response& response);

// Fields of an answer; empty or 0 if absent or of another type.
std::string text_field(const boost::json::object& object, std::string_view name);
int64_t number_field(const boost::json::object& object, std::string_view name);

}  // namespace alcove::cli
