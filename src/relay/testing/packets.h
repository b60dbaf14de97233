// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>

#include <cstdint>
#include <string>

#include "sys/netlink.h"

namespace alcove::relay::testing {

// First packets of connections from port 40000 to port 443, as a sandbox's kernel makes them.
inline std::string tcp_segment() {
  tcphdr tcp{};
  tcp.source = htons(40000);
  tcp.dest = htons(443);
  tcp.doff = 5;
  tcp.syn = 1;
  return {reinterpret_cast<const char*>(&tcp), sizeof tcp};
}

inline std::string tcp4_packet(const char* from, const char* to) {
  iphdr ip{};
  ip.version = 4;
  ip.ihl = 5;
  ip.protocol = IPPROTO_TCP;
  ::inet_pton(AF_INET, from, &ip.saddr);
  ::inet_pton(AF_INET, to, &ip.daddr);
  return std::string(reinterpret_cast<const char*>(&ip), sizeof ip) + tcp_segment();
}

inline std::string tcp6_packet(const char* from, const char* to) {
  ip6_hdr ip{};
  ip.ip6_vfc = 0x60;
  ip.ip6_nxt = IPPROTO_TCP;
  ::inet_pton(AF_INET6, from, &ip.ip6_src);
  ::inet_pton(AF_INET6, to, &ip.ip6_dst);
  return std::string(reinterpret_cast<const char*>(&ip), sizeof ip) + tcp_segment();
}

// As the kernel hands a packet of the queue over.
inline std::string queue_message(uint32_t id, const std::string& packet) {
  sys::NetlinkWriter out;
  out.message((NFNL_SUBSYS_QUEUE << 8) | NFQNL_MSG_PACKET, 0, nfgenmsg{});
  nfqnl_msg_packet_hdr header{};
  header.packet_id = htonl(id);
  out.attribute(NFQA_PACKET_HDR, header);
  out.attribute_bytes(NFQA_PAYLOAD, packet);
  return out.bytes();
}

}  // namespace alcove::relay::testing
