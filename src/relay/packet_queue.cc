// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "relay/packet_queue.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <cerrno>

#include "sys/netlink.h"

namespace alcove::relay {
namespace {

// Enough for the headers of a first packet.
constexpr uint32_t kCopiedBytes = 128;

nfgenmsg queue_header() {
  return {.nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(network::kDialQueue)};
}

void send_verdict(int queue, uint32_t id, uint32_t verdict, network::DialMark mark) {
  sys::NetlinkWriter out;
  out.message((NFNL_SUBSYS_QUEUE << 8) | NFQNL_MSG_VERDICT, 0, queue_header());
  out.attribute(NFQA_VERDICT_HDR, nfqnl_msg_verdict_hdr{htonl(verdict), htonl(id)});
  out.attribute(NFQA_MARK, htonl(static_cast<uint32_t>(mark)));
  (void)::send(queue, out.bytes().data(), out.bytes().size(), 0);
}

}  // namespace

Result<UniqueFd> open_packet_queue() {
  ALCOVE_TRY_ASSIGN(UniqueFd fd, sys::open_netlink(NETLINK_NETFILTER));
  // A burst that does not fit is lost and comes again; it is no reason to fail.
  const int on = 1;
  (void)::setsockopt(fd.get(), SOL_NETLINK, NETLINK_NO_ENOBUFS, &on, sizeof on);
  sys::NetlinkWriter out;
  out.message((NFNL_SUBSYS_QUEUE << 8) | NFQNL_MSG_CONFIG, NLM_F_ACK, queue_header());
  out.attribute(NFQA_CFG_CMD,
                nfqnl_msg_config_cmd{.command = NFQNL_CFG_CMD_BIND, ._pad = 0, .pf = 0});
  out.attribute(NFQA_CFG_PARAMS, nfqnl_msg_config_params{.copy_range = htonl(kCopiedBytes),
                                                         .copy_mode = NFQNL_COPY_PACKET});
  out.attribute(NFQA_CFG_QUEUE_MAXLEN, htonl(kQueueLength));
  const int error = sys::run_netlink(fd.get(), out.bytes());
  if (error != 0) return fail_errno(error, "bind packet queue");
  return fd;
}

std::optional<std::optional<QueuedPacket>> receive_packet(int queue) {
  char buffer[4096];
  const ssize_t got = ::recv(queue, buffer, sizeof buffer, MSG_DONTWAIT);
  if (got < 0) return {};
  return std::optional(parse_queued_packet({buffer, static_cast<size_t>(got)}));
}

void pass_packet(int queue, uint32_t id, network::DialMark mark) {
  send_verdict(queue, id, NF_ACCEPT, mark);
}

void drop_packet(int queue, uint32_t id) {
  send_verdict(queue, id, NF_DROP, network::DialMark::kNone);
}

}  // namespace alcove::relay
