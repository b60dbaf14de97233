// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "sys/loopback_network.h"

#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include "sys/netlink.h"

namespace alcove::sys {
namespace {

constexpr uint32_t kLoopbackIndex = 1;  // in every network namespace

template <typename Address>
void add_address_and_route(NetlinkWriter& out, unsigned char family, const Address& address) {
  ifaddrmsg holder{};
  holder.ifa_family = family;
  holder.ifa_prefixlen = 8 * sizeof address;
  holder.ifa_flags = IFA_F_NODAD;
  holder.ifa_index = kLoopbackIndex;
  out.message(RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, holder);
  out.attribute(IFA_LOCAL, address);
  out.attribute(IFA_ADDRESS, address);

  // In the main table: a network that the sandbox makes for itself is more specific and wins.
  rtmsg route{};
  route.rtm_family = family;
  route.rtm_table = RT_TABLE_MAIN;
  route.rtm_protocol = RTPROT_BOOT;
  route.rtm_scope = RT_SCOPE_HOST;
  route.rtm_type = RTN_LOCAL;
  out.message(RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, route);
  out.attribute(RTA_OIF, kLoopbackIndex);
  out.attribute(RTA_PREFSRC, address);
}

int run(const NetlinkWriter& requests) {
  const auto socket = open_netlink(NETLINK_ROUTE);
  if (!socket) return socket.error().error_number();
  return run_netlink(socket->get(), requests.bytes());
}

}  // namespace

int lead_ipv4_to_loopback(in_addr address) {
  NetlinkWriter out;
  ifinfomsg up{};
  up.ifi_index = kLoopbackIndex;
  up.ifi_flags = IFF_UP;
  up.ifi_change = IFF_UP;
  out.message(RTM_NEWLINK, NLM_F_ACK, up);
  add_address_and_route(out, AF_INET, address);
  return run(out);
}

int lead_ipv6_to_loopback(in6_addr address) {
  NetlinkWriter out;
  add_address_and_route(out, AF_INET6, address);
  return run(out);
}

}  // namespace alcove::sys
