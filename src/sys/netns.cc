// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "sys/netns.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/assert.h"
#include "sys/file_io.h"

namespace alcove::sys {
namespace {

Result<UniqueFd> make_socket_in(int netns, int home, int family) {
  if (::setns(netns, CLONE_NEWNET) != 0) return fail_errno(errno, "enter network namespace");
  const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int error = errno;
  // A thread that stayed in a sandbox's network would serve other sandboxes from there.
  ALCOVE_ASSERT(::setns(home, CLONE_NEWNET) == 0);
  if (fd < 0) return fail_errno(error, "socket");
  return UniqueFd(fd);
}

}  // namespace

Result<UniqueFd> open_own_netns() { return open_file("/proc/thread-self/ns/net", O_RDONLY); }

Result<UniqueFd> connect_loopback_in(int netns, int home, IpFamily family, uint16_t port) {
  ALCOVE_TRY_ASSIGN(UniqueFd fd,
                    make_socket_in(netns, home, family == IpFamily::kV4 ? AF_INET : AF_INET6));
  const int one = 1;
  (void)::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  int status;
  if (family == IpFamily::kV4) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    status = ::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to);
  } else {
    sockaddr_in6 to{};
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(port);
    to.sin6_addr = in6addr_loopback;
    status = ::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to);
  }
  if (status != 0 && errno != EINPROGRESS) return fail_errno(errno, "connect");
  return fd;
}

}  // namespace alcove::sys
