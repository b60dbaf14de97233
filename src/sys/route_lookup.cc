// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "sys/route_lookup.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "sys/netlink.h"

namespace alcove::sys {

Result<RouteLookup> RouteLookup::open() {
  ALCOVE_TRY_ASSIGN(UniqueFd socket, open_netlink(NETLINK_ROUTE));
  return RouteLookup(std::move(socket));
}

RouteLookup::Way RouteLookup::find(unsigned char family, const void* address, size_t size) {
  char buffer[8192];
  // What an earlier question left behind is no answer to this one.
  while (::recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT) >= 0) {
  }
  NetlinkWriter out;
  rtmsg question{};
  question.rtm_family = family;
  question.rtm_dst_len = static_cast<unsigned char>(8 * size);
  out.message(RTM_GETROUTE, 0, question);
  out.attribute_bytes(RTA_DST, {static_cast<const char*>(address), size});
  if (::send(socket_.get(), out.bytes().data(), out.bytes().size(), 0) < 0)
    return Way::kUnreachable;
  const ssize_t got = ::recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (got < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(rtmsg)))) return Way::kUnreachable;
  nlmsghdr header;
  std::memcpy(&header, buffer, sizeof header);
  if (header.nlmsg_type != RTM_NEWROUTE) return Way::kUnreachable;
  rtmsg route;
  std::memcpy(&route, buffer + NLMSG_HDRLEN, sizeof route);
  switch (route.rtm_type) {
    case RTN_UNICAST:
      return Way::kOut;
    case RTN_UNREACHABLE:
    case RTN_BLACKHOLE:
    case RTN_PROHIBIT:
    case RTN_THROW:
      return Way::kUnreachable;
    default:
      return Way::kOwn;
  }
}

}  // namespace alcove::sys
