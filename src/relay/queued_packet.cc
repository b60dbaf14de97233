// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "relay/queued_packet.h"

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>

#include "sys/netlink.h"

namespace alcove::relay {
namespace {

template <typename Header>
std::optional<Header> read_header(std::string_view bytes) {
  if (bytes.size() < sizeof(Header)) return {};
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header;
}

std::optional<network::FlowKey> read_tcp(std::string_view segment, network::IpAddress from,
                                         network::IpAddress to) {
  const auto tcp = read_header<tcphdr>(segment);
  if (!tcp || tcp->syn == 0 || tcp->ack != 0 || tcp->rst != 0 || tcp->fin != 0) return {};
  return network::FlowKey{{from, ntohs(tcp->source)}, {to, ntohs(tcp->dest)}};
}

}  // namespace

std::optional<network::FlowKey> parse_connection_request(std::string_view packet) {
  if (packet.empty()) return {};
  const int version = static_cast<uint8_t>(packet[0]) >> 4;
  if (version == 4) {
    const auto ip = read_header<iphdr>(packet);
    const size_t length = ip ? size_t{ip->ihl} * 4 : 0;
    if (length < sizeof(iphdr) || length > packet.size() || ip->protocol != IPPROTO_TCP) return {};
    constexpr uint16_t kFragmentOffset = 0x1fff;
    if ((ntohs(ip->frag_off) & kFragmentOffset) != 0) return {};
    return read_tcp(packet.substr(length), network::IpAddress(in_addr{ip->saddr}),
                    network::IpAddress(in_addr{ip->daddr}));
  }
  if (version == 6) {
    const auto ip = read_header<ip6_hdr>(packet);
    if (!ip || ip->ip6_nxt != IPPROTO_TCP) return {};
    return read_tcp(packet.substr(sizeof(ip6_hdr)), network::IpAddress(ip->ip6_src),
                    network::IpAddress(ip->ip6_dst));
  }
  return {};
}

std::optional<QueuedPacket> parse_queued_packet(std::string_view message) {
  const auto header = read_header<nlmsghdr>(message);
  if (!header || header->nlmsg_len > message.size() ||
      header->nlmsg_len < sizeof(nlmsghdr) + sizeof(nfgenmsg) ||
      header->nlmsg_type != ((NFNL_SUBSYS_QUEUE << 8) | NFQNL_MSG_PACKET)) {
    return {};
  }
  std::optional<uint32_t> id;
  std::string_view payload;
  const auto attributes =
      message.substr(0, header->nlmsg_len).substr(sizeof(nlmsghdr) + sizeof(nfgenmsg));
  sys::for_each_attribute(attributes, [&](uint16_t type, std::string_view value) {
    if (type == NFQA_PACKET_HDR) {
      if (const auto packet = read_header<nfqnl_msg_packet_hdr>(value)) {
        id = ntohl(packet->packet_id);
      }
    } else if (type == NFQA_PAYLOAD) {
      payload = value;
    }
  });
  if (!id) return {};
  return QueuedPacket{*id, parse_connection_request(payload)};
}

}  // namespace alcove::relay
