// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/zmtp_endpoint.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "base/unique_fd.h"
#include "net/listener.h"
#include "net/tcp_stream.h"

namespace alcove::interpreter {
namespace {

Result<UniqueFd> start_unix_connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return fail(Code::kInvalidArgument, cat("no path of a Unix socket: ", path));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return fail_errno(errno, "socket");
  // Never "in progress": the kernel takes it into the backlog at once, or says EAGAIN.
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail_errno(errno, cat("connect to ", path));
  }
  return fd;
}

Result<UniqueFd> start_tcp_connect(std::string_view address) {
  const size_t colon = address.rfind(':');
  const auto port = colon == std::string_view::npos
                        ? std::nullopt
                        : parse_number<uint16_t>(address.substr(colon + 1));
  if (!port) return fail(Code::kInvalidArgument, cat("no port in ", address));
  return net::start_connect(std::string(address.substr(0, colon)), *port);
}

Result<UniqueFd> begin_connect(std::string_view endpoint) {
  constexpr std::string_view kIpc = "ipc://";
  constexpr std::string_view kTcp = "tcp://";
  if (endpoint.starts_with(kIpc)) {
    return start_unix_connect(std::string(endpoint.substr(kIpc.size())));
  }
  if (endpoint.starts_with(kTcp)) return start_tcp_connect(endpoint.substr(kTcp.size()));
  return fail(Code::kInvalidArgument, cat("neither ipc:// nor tcp://: ", endpoint));
}

}  // namespace

Task<Result<std::unique_ptr<net::Stream>>> connect_zmtp_endpoint(
    std::string endpoint, std::chrono::milliseconds timeout) {
  ALCOVE_CO_TRY_ASSIGN(UniqueFd fd, begin_connect(endpoint));
  co_return co_await net::finish_connect(std::move(fd), timeout);
}

}  // namespace alcove::interpreter
