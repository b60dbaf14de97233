// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/strings.h"

namespace alcove::net {
namespace {

constexpr int kBacklog = 4096;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  int family() const { return storage.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Result<SocketAddress> parse_address(const std::string& text, uint16_t port) {
  SocketAddress address;
  auto& v4 = reinterpret_cast<sockaddr_in&>(address.storage);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address.storage);
  if (::inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    address.size = sizeof v4;
  } else if (::inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    address.size = sizeof v6;
  } else {
    return fail(Code::kInvalidArgument, cat("not an IP address: ", text));
  }
  return address;
}

Result<UniqueFd> make_socket(const SocketAddress& address) {
  UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return fail_errno(errno, "socket");
  return fd;
}

Result<void> switch_on(const UniqueFd& fd, int level, int option, std::string_view what) {
  const int on = 1;
  if (::setsockopt(fd.get(), level, option, &on, sizeof on) != 0) return fail_errno(errno, what);
  return {};
}

}  // namespace

Result<UniqueFd> make_listener(const std::string& text, uint16_t port, ReusePort reuse_port) {
  ALCOVE_TRY_ASSIGN(const SocketAddress address, parse_address(text, port));
  ALCOVE_TRY_ASSIGN(UniqueFd fd, make_socket(address));
  ALCOVE_TRY(switch_on(fd, SOL_SOCKET, SO_REUSEADDR, "SO_REUSEADDR"));
  if (reuse_port == ReusePort::kYes) {
    ALCOVE_TRY(switch_on(fd, SOL_SOCKET, SO_REUSEPORT, "SO_REUSEPORT"));
  }
  if (address.family() == AF_INET6) {
    ALCOVE_TRY(switch_on(fd, IPPROTO_IPV6, IPV6_V6ONLY, "IPV6_V6ONLY"));
  }
  if (::bind(fd.get(), address.get(), address.size) != 0) {
    return fail_errno(errno, cat("listen on ", text, " port ", port));
  }
  if (::listen(fd.get(), kBacklog) != 0) {
    return fail_errno(errno, cat("listen on ", text, " port ", port));
  }
  return fd;
}

Result<uint16_t> local_port(const UniqueFd& socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&storage), &size) != 0) {
    return fail_errno(errno, "getsockname");
  }
  if (storage.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
  }
  if (storage.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
  }
  return fail(Code::kInvalidArgument, "the socket has no port");
}

Result<UniqueFd> start_connect(const std::string& text, uint16_t port) {
  ALCOVE_TRY_ASSIGN(const SocketAddress address, parse_address(text, port));
  ALCOVE_TRY_ASSIGN(UniqueFd fd, make_socket(address));
  if (::connect(fd.get(), address.get(), address.size) != 0 && errno != EINPROGRESS) {
    return fail_errno(errno, cat("connect to ", text, " port ", port));
  }
  return fd;
}

}  // namespace alcove::net
