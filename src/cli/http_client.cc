// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/http_client.h"

#include <netdb.h>
#include <sys/socket.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "net/listener.h"
#include "net/tcp_stream.h"

namespace alcove::cli {
namespace {

constexpr std::chrono::seconds kConnectLimit{10};
constexpr std::chrono::seconds kKeepIdle{30};
constexpr uint64_t kMaxAnswer = 256u << 20;

// The numeric addresses of a name, in the order to try them. Blocks.
Result<std::vector<std::string>> resolve(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list); error != 0) {
    return fail(Code::kUnavailable, cat("look up ", host, ": ", ::gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(entry->ai_addr, entry->ai_addrlen, text, sizeof text, nullptr, 0,
                      NI_NUMERICHOST) == 0) {
      addresses.emplace_back(text);
    }
  }
  return addresses;
}

Task<Result<std::unique_ptr<net::Stream>>> dial(const Endpoint& endpoint) {
  ALCOVE_CO_TRY_ASSIGN(const auto addresses, resolve(endpoint.host));
  Error last(Code::kUnavailable, cat(endpoint.host, " has no address"));
  for (const std::string& address : addresses) {
    auto socket = net::start_connect(address, endpoint.port);
    if (!socket) {
      last = socket.error();
      continue;
    }
    auto stream = co_await net::finish_connect(std::move(*socket), kConnectLimit);
    if (stream) co_return std::move(*stream);
    last = stream.error();
  }
  co_return fail(std::move(last));
}

}  // namespace

Result<Endpoint> parse_endpoint(std::string_view url) {
  const auto broken = [&](std::string_view why) {
    return fail(Code::kInvalidArgument, cat("the server's address ", url, " ", why,
                                            ": expected one like ", "http://127.0.0.1:3000"));
  };
  constexpr std::string_view kScheme = "http://";
  if (url.starts_with("https://")) return broken("needs TLS, which this command has not yet");
  if (!url.starts_with(kScheme)) return broken("does not begin with http://");
  std::string_view rest = url.substr(kScheme.size());
  const size_t slash = rest.find('/');
  Endpoint endpoint;
  endpoint.authority = rest.substr(0, slash);
  if (slash != std::string_view::npos) endpoint.prefix = rest.substr(slash);
  while (endpoint.prefix.ends_with('/')) endpoint.prefix.pop_back();

  std::string_view host = endpoint.authority;
  // A colon behind a ']' or without any bracket comes before the port.
  const size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos) {
    const auto port = parse_number<uint16_t>(host.substr(colon + 1));
    if (!port || *port == 0) return broken("has no valid port");
    endpoint.port = *port;
    host = host.substr(0, colon);
  }
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  constexpr std::string_view kForbidden = " \t\r\n@?#[]";
  if (host.empty() || host.find_first_of(kForbidden) != std::string_view::npos ||
      endpoint.prefix.find_first_of(kForbidden) != std::string_view::npos) {
    return broken("is not understood");
  }
  endpoint.host = host;
  return endpoint;
}

Task<Result<http::ClientConnection>> HttpClient::take() {
  auto idle = std::exchange(idle_, std::nullopt);
  if (idle && std::chrono::steady_clock::now() - idle_since_ < kKeepIdle) {
    co_return std::move(*idle);
  }
  auto stream = co_await dial(endpoint_);
  if (!stream) {
    co_return fail(Code::kUnavailable,
                   cat("cannot reach the server at ", endpoint_.origin(), ": ",
                       stream.error().message(), ". Is it running? `./dev up --detach` starts it; ",
                       "--url or E2B_API_URL names another one"));
  }
  co_return http::ClientConnection(std::move(*stream));
}

void HttpClient::give_back(http::ClientConnection connection) {
  if (!connection.reusable()) return;
  connection.stream().set_read_deadline(std::nullopt);
  connection.stream().set_write_deadline(std::nullopt);
  idle_.emplace(std::move(connection));
  idle_since_ = std::chrono::steady_clock::now();
}

http::RequestHead HttpClient::complete(http::RequestHead head) const {
  head.target = endpoint_.prefix + head.target;
  head.headers.set("Host", endpoint_.authority);
  head.headers.set("User-Agent", "alcove/" ALCOVE_VERSION);
  return head;
}

Task<Result<http::Response>> HttpClient::fetch(http::RequestHead head, std::string body,
                                               std::optional<std::chrono::seconds> limit) {
  ALCOVE_CO_TRY_ASSIGN(http::ClientConnection connection, co_await take());
  if (limit) {
    const auto deadline = std::chrono::steady_clock::now() + *limit;
    connection.stream().set_read_deadline(deadline);
    connection.stream().set_write_deadline(deadline);
  }
  auto response =
      co_await http::fetch(connection, complete(std::move(head)), std::move(body), kMaxAnswer);
  if (!response) {
    co_return fail(std::move(response).error().context(cat("ask ", endpoint_.origin())));
  }
  give_back(std::move(connection));
  co_return response;
}

}  // namespace alcove::cli
