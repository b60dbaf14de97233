// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/client_connection.h"
#include "net/task.h"

namespace alcove::cli {

// An origin and the path that all requests to it begin with.
struct Endpoint {
  std::string host;  // a name or an address, without brackets
  uint16_t port = 80;
  std::string authority;  // as it stands in the URL: "localhost:3000"
  std::string prefix;     // "" or "/x", no slash at the end

  std::string origin() const { return "http://" + authority; }
};

// "http://127.0.0.1:3000". TLS is refused with a text that says so.
Result<Endpoint> parse_endpoint(std::string_view url);

// Connections to one endpoint. One that is not in use any more is kept for the next request, for a
// while: what lies between us and the server closes idle ones.
class HttpClient {
 public:
  explicit HttpClient(Endpoint endpoint) : endpoint_(std::move(endpoint)) {}

  const Endpoint& endpoint() const { return endpoint_; }

  // A connection for requests of the caller's own. The error names the address and the remedy.
  Task<Result<http::ClientConnection>> take();
  void give_back(http::ClientConnection connection);

  // A whole request and its whole answer, whatever its status; `head.target` begins behind the
  // prefix. kDeadlineExceeded after `limit`.
  Task<Result<http::Response>> fetch(http::RequestHead head, std::string body,
                                     std::optional<std::chrono::seconds> limit);

  // Adds the prefix, Host and User-Agent.
  http::RequestHead complete(http::RequestHead head) const;

 private:
  Endpoint endpoint_;
  std::optional<http::ClientConnection> idle_;
  std::chrono::steady_clock::time_point idle_since_;
};

// How long a request that does not stream may take.
inline constexpr std::chrono::seconds kRequestLimit{120};

}  // namespace alcove::cli
