// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "sys/message.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace alcove::sys {

Result<std::pair<UniqueFd, UniqueFd>> make_message_pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
    return fail_errno(errno, "socketpair");
  }
  return std::pair(UniqueFd(fds[0]), UniqueFd(fds[1]));
}

Result<void> send_message(int socket, std::string_view bytes, std::span<const int> fds) {
  if (bytes.empty() || bytes.size() > kMaxMessageBytes || fds.size() > kMaxMessageFds) {
    return fail(Code::kInvalidArgument, "message too large");
  }
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxMessageFds * sizeof(int))];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  }
  ssize_t sent;
  do {
    sent = ::sendmsg(socket, &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return fail_errno(errno, "sendmsg");
  return {};
}

Result<Message> receive_message(int socket) {
  Message message;
  message.bytes.resize(kMaxMessageBytes);
  iovec part{message.bytes.data(), message.bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxMessageFds * sizeof(int))];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t got;
  do {
    got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return fail_errno(errno, "recvmsg");
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
      message.fds.emplace_back(fd);
    }
  }
  if (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
    return fail(Code::kResourceExhausted, "message cut short (out of descriptors?)");
  }
  if (got == 0) return fail(Code::kUnavailable, "peer closed the socket");
  message.bytes.resize(static_cast<size_t>(got));
  return message;
}

Result<Message> receive_message(int socket, std::chrono::steady_clock::time_point deadline) {
  using std::chrono::ceil, std::chrono::milliseconds, std::chrono::steady_clock;
  for (;;) {
    const auto left = ceil<milliseconds>(deadline - steady_clock::now());
    pollfd waiting{socket, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, left.count() > 0 ? static_cast<int>(left.count()) : 0);
    if (ready > 0) return receive_message(socket);
    if (ready == 0) return fail(Code::kDeadlineExceeded, "no answer in time");
    if (errno != EINTR) return fail_errno(errno, "poll");
  }
}

}  // namespace alcove::sys
