// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "relay/relay_socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/strings.h"
#include "sys/file_io.h"

namespace alcove::relay {
namespace {

constexpr int kBacklog = 16;

// Named by the open directory: sun_path is too short for some paths.
sockaddr_un address_in(int directory) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = cat("/proc/self/fd/", directory, "/relay.sock");
  std::memcpy(address.sun_path, path.c_str(), path.size());
  return address;
}

}  // namespace

Result<UniqueFd> lock_relay(const std::string& data_dir) {
  ALCOVE_TRY_ASSIGN(UniqueFd lock,
                    sys::open_file(data_dir + "/relay.lock", O_RDWR | O_CREAT, 0600));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return fail(Code::kFailedPrecondition, cat("another relay serves ", data_dir));
  }
  return lock;
}

Result<UniqueFd> listen_for_servers(const std::string& data_dir) {
  ALCOVE_TRY_ASSIGN(const UniqueFd directory, sys::open_file(data_dir, O_PATH | O_DIRECTORY));
  (void)::unlinkat(directory.get(), "relay.sock", 0);
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return fail_errno(errno, "socket");
  const sockaddr_un address = address_in(directory.get());
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    return fail_errno(errno, cat("listen on ", data_dir, "/relay.sock"));
  }
  return fd;
}

Result<UniqueFd> connect_to_relay(const std::string& data_dir, std::chrono::milliseconds patience) {
  ALCOVE_TRY_ASSIGN(const UniqueFd directory, sys::open_file(data_dir, O_PATH | O_DIRECTORY));
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return fail_errno(errno, "socket");
  const timeval limit{.tv_sec = patience.count() / 1000, .tv_usec = patience.count() % 1000 * 1000};
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const sockaddr_un address = address_in(directory.get());
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail_errno(errno, "connect to the relay");
  }
  return fd;
}

}  // namespace alcove::relay
