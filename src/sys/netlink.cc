// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "sys/netlink.h"

#include <linux/netlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace alcove::sys {

void NetlinkWriter::begin(uint16_t type, uint16_t flags) {
  start_ = out_.size();
  nlmsghdr header{};
  header.nlmsg_type = type;
  header.nlmsg_flags = static_cast<uint16_t>(flags | NLM_F_REQUEST);
  header.nlmsg_seq = ++sequence_;
  out_.append(reinterpret_cast<const char*>(&header), sizeof header);
  finish_length();
}

void NetlinkWriter::append(const void* data, size_t size) {
  out_.append(static_cast<const char*>(data), size);
  out_.resize(NLMSG_ALIGN(out_.size()), '\0');
  finish_length();
}

void NetlinkWriter::attribute_bytes(uint16_t type, std::string_view value) {
  const nlattr header{static_cast<uint16_t>(sizeof(nlattr) + value.size()), type};
  out_.append(reinterpret_cast<const char*>(&header), sizeof header);
  append(value.data(), value.size());
}

void NetlinkWriter::finish_length() {
  const auto length = static_cast<uint32_t>(out_.size() - start_);
  std::memcpy(out_.data() + start_, &length, sizeof length);
}

Result<UniqueFd> open_netlink(int protocol) {
  UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol));
  if (!fd.valid()) return fail_errno(errno, "netlink socket");
  return fd;
}

int run_netlink(int socket, std::string_view requests) {
  if (::send(socket, requests.data(), requests.size(), 0) < 0) return errno;
  int first_error = -1;
  alignas(nlmsghdr) char buffer[8192];
  for (;;) {
    const ssize_t got = ::recv(socket, buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    auto left = static_cast<size_t>(got);
    for (auto* message = reinterpret_cast<nlmsghdr*>(buffer); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_type != NLMSG_ERROR) continue;
      const int error = -static_cast<const nlmsgerr*>(NLMSG_DATA(message))->error;
      if (first_error <= 0) first_error = error;
    }
  }
  return first_error < 0 ? EIO : first_error;
}

}  // namespace alcove::sys
