// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "relay/unreachable_message.h"

#include <arpa/inet.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>

#include <cstdint>
#include <cstring>

namespace alcove::relay {
namespace {

template <typename Header>
void append(std::string& out, const Header& header) {
  out.append(reinterpret_cast<const char*>(&header), sizeof header);
}

uint16_t internet_checksum(const std::string& bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    uint16_t word;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    sum += word;
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

// The head of the datagram that the message is about; receivers find their socket by it.
udphdr datagram_head(const network::FlowKey& flow) {
  udphdr udp{};
  udp.source = htons(flow.from.port);
  udp.dest = htons(flow.to.port);
  udp.len = htons(sizeof udp);
  return udp;
}

std::string make_v4(const network::FlowKey& flow, Unreachable why) {
  icmphdr icmp{};
  icmp.type = ICMP_DEST_UNREACH;
  icmp.code = why == Unreachable::kPortClosed ? ICMP_PORT_UNREACH : ICMP_PKT_FILTERED;
  iphdr ip{};
  ip.version = 4;
  ip.ihl = 5;
  ip.ttl = 64;
  ip.protocol = IPPROTO_UDP;
  ip.tot_len = htons(sizeof ip + sizeof(udphdr));
  ip.saddr = flow.from.address.to_in_addr().s_addr;
  ip.daddr = flow.to.address.to_in_addr().s_addr;
  std::string out;
  append(out, icmp);
  append(out, ip);
  append(out, datagram_head(flow));
  const uint16_t checksum = internet_checksum(out);
  std::memcpy(out.data() + offsetof(icmphdr, checksum), &checksum, sizeof checksum);
  return out;
}

std::string make_v6(const network::FlowKey& flow, Unreachable why) {
  icmp6_hdr icmp{};
  icmp.icmp6_type = ICMP6_DST_UNREACH;
  icmp.icmp6_code =
      why == Unreachable::kPortClosed ? ICMP6_DST_UNREACH_NOPORT : ICMP6_DST_UNREACH_ADMIN;
  ip6_hdr ip{};
  ip.ip6_vfc = 0x60;
  ip.ip6_plen = htons(sizeof(udphdr));
  ip.ip6_nxt = IPPROTO_UDP;
  ip.ip6_hlim = 64;
  ip.ip6_src = flow.from.address.to_in6_addr();
  ip.ip6_dst = flow.to.address.to_in6_addr();
  std::string out;
  append(out, icmp);
  append(out, ip);
  append(out, datagram_head(flow));
  return out;
}

}  // namespace

std::string make_unreachable_message(const network::FlowKey& flow, Unreachable why) {
  return flow.to.address.is_v4() ? make_v4(flow, why) : make_v6(flow, why);
}

}  // namespace alcove::relay
