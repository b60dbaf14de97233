// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "network/rule_sets.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/xt_NFQUEUE.h>
#include <linux/netlink.h>
#include <netinet/in.h>

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>

extern "C" {
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/table.h>
}

namespace alcove::network {
namespace {

constexpr const char* kTable = "alcove";
constexpr const char* kDialChain = "dial";
constexpr const char* kLeaveChain = "leave";
constexpr int kDialPriority = -300;
constexpr int kLeavePriority = -150;

using Expr = nftnl_expr*;

Expr load_meta(uint32_t key) {
  Expr expr = nftnl_expr_alloc("meta");
  nftnl_expr_set_u32(expr, NFTNL_EXPR_META_KEY, key);
  nftnl_expr_set_u32(expr, NFTNL_EXPR_META_DREG, NFT_REG_1);
  return expr;
}

Expr load_payload(uint32_t base, uint32_t offset, uint32_t length) {
  Expr expr = nftnl_expr_alloc("payload");
  nftnl_expr_set_u32(expr, NFTNL_EXPR_PAYLOAD_BASE, base);
  nftnl_expr_set_u32(expr, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
  nftnl_expr_set_u32(expr, NFTNL_EXPR_PAYLOAD_LEN, length);
  nftnl_expr_set_u32(expr, NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1);
  return expr;
}

Expr mask_with(std::string_view mask) {
  const std::string zeros(mask.size(), '\0');
  Expr expr = nftnl_expr_alloc("bitwise");
  nftnl_expr_set_u32(expr, NFTNL_EXPR_BITWISE_SREG, NFT_REG_1);
  nftnl_expr_set_u32(expr, NFTNL_EXPR_BITWISE_DREG, NFT_REG_1);
  nftnl_expr_set_u32(expr, NFTNL_EXPR_BITWISE_LEN, static_cast<uint32_t>(mask.size()));
  nftnl_expr_set(expr, NFTNL_EXPR_BITWISE_MASK, mask.data(), static_cast<uint32_t>(mask.size()));
  nftnl_expr_set(expr, NFTNL_EXPR_BITWISE_XOR, zeros.data(), static_cast<uint32_t>(zeros.size()));
  return expr;
}

Expr equals(std::string_view value) {
  Expr expr = nftnl_expr_alloc("cmp");
  nftnl_expr_set_u32(expr, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
  nftnl_expr_set_u32(expr, NFTNL_EXPR_CMP_OP, NFT_CMP_EQ);
  nftnl_expr_set(expr, NFTNL_EXPR_CMP_DATA, value.data(), static_cast<uint32_t>(value.size()));
  return expr;
}

template <typename Number>
Expr equals_number(Number value) {
  return equals({reinterpret_cast<const char*>(&value), sizeof value});
}

Expr accept_packet() {
  Expr expr = nftnl_expr_alloc("immediate");
  nftnl_expr_set_u32(expr, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
  nftnl_expr_set_u32(expr, NFTNL_EXPR_IMM_VERDICT, NF_ACCEPT);
  return expr;
}

Expr reject_with(uint32_t type, uint8_t code) {
  Expr expr = nftnl_expr_alloc("reject");
  nftnl_expr_set_u32(expr, NFTNL_EXPR_REJECT_TYPE, type);
  nftnl_expr_set_u8(expr, NFTNL_EXPR_REJECT_CODE, code);
  return expr;
}

Expr set_relay_port() {
  const uint16_t port = htons(kRelayPort);
  Expr expr = nftnl_expr_alloc("immediate");
  nftnl_expr_set_u32(expr, NFTNL_EXPR_IMM_DREG, NFT_REG_1);
  nftnl_expr_set(expr, NFTNL_EXPR_IMM_DATA, &port, sizeof port);
  return expr;
}

Expr to_relay(uint32_t family) {
  Expr expr = nftnl_expr_alloc("tproxy");
  nftnl_expr_set_u32(expr, NFTNL_EXPR_TPROXY_FAMILY, family);
  nftnl_expr_set_u32(expr, NFTNL_EXPR_TPROXY_REG_PORT, NFT_REG_1);
  return expr;
}

// No "bypass" in either way of queueing: while the relay is away, first packets are dropped and
// come again.
Expr queue_expression() {
  Expr expr = nftnl_expr_alloc("queue");
  nftnl_expr_set_u16(expr, NFTNL_EXPR_QUEUE_NUM, kDialQueue);
  nftnl_expr_set_u16(expr, NFTNL_EXPR_QUEUE_TOTAL, 1);
  return expr;
}

// For kernels without nft's own queue expression: the one of iptables.
Expr queue_target() {
  Expr expr = nftnl_expr_alloc("target");
  nftnl_expr_set_str(expr, NFTNL_EXPR_TG_NAME, "NFQUEUE");
  nftnl_expr_set_u32(expr, NFTNL_EXPR_TG_REV, 0);
  // Padded as the kernel asks; the expression frees it.
  constexpr size_t kPadded = 8;
  static_assert(sizeof(xt_NFQ_info) <= kPadded);
  void* info = std::calloc(1, kPadded);
  const xt_NFQ_info queue{kDialQueue};
  std::memcpy(info, &queue, sizeof queue);
  nftnl_expr_set(expr, NFTNL_EXPR_TG_INFO, info, kPadded);
  return expr;
}

std::string address_bytes(int family, const char* text) {
  std::string bytes(family == AF_INET ? sizeof(in_addr) : sizeof(in6_addr), '\0');
  ::inet_pton(family, text, bytes.data());
  return bytes;
}

class Batch {
 public:
  Batch() : buffer_(kBufferBytes, '\0') { advance(nftnl_batch_begin(tail(), ++sequence_)); }

  void table(uint16_t family) {
    nftnl_table* table = nftnl_table_alloc();
    nftnl_table_set_str(table, NFTNL_TABLE_NAME, kTable);
    nlmsghdr* message = begin(NFT_MSG_NEWTABLE, family);
    nftnl_table_nlmsg_build_payload(message, table);
    nftnl_table_free(table);
    advance(message);
  }

  void chain(uint16_t family, const char* name, int priority) {
    nftnl_chain* chain = nftnl_chain_alloc();
    nftnl_chain_set_str(chain, NFTNL_CHAIN_TABLE, kTable);
    nftnl_chain_set_str(chain, NFTNL_CHAIN_NAME, name);
    nftnl_chain_set_str(chain, NFTNL_CHAIN_TYPE, "filter");
    nftnl_chain_set_u32(chain, NFTNL_CHAIN_HOOKNUM, NF_INET_PRE_ROUTING);
    nftnl_chain_set_s32(chain, NFTNL_CHAIN_PRIO, priority);
    nlmsghdr* message = begin(NFT_MSG_NEWCHAIN, family);
    nftnl_chain_nlmsg_build_payload(message, chain);
    nftnl_chain_free(chain);
    advance(message);
  }

  void rule(uint16_t family, const char* chain, std::initializer_list<Expr> expressions) {
    nftnl_rule* rule = nftnl_rule_alloc();
    nftnl_rule_set_str(rule, NFTNL_RULE_TABLE, kTable);
    nftnl_rule_set_str(rule, NFTNL_RULE_CHAIN, chain);
    for (Expr expression : expressions) nftnl_rule_add_expr(rule, expression);
    nlmsghdr* message = begin(NFT_MSG_NEWRULE, family);
    nftnl_rule_nlmsg_build_payload(message, rule);
    nftnl_rule_free(rule);
    advance(message);
  }

  std::string finish() {
    // One acknowledgement for the whole batch.
    last_->nlmsg_flags |= NLM_F_ACK;
    advance(nftnl_batch_end(tail(), ++sequence_));
    buffer_.resize(used_);
    return std::move(buffer_);
  }

 private:
  static constexpr size_t kBufferBytes = 64 * 1024;

  char* tail() { return buffer_.data() + used_; }
  nlmsghdr* begin(uint16_t type, uint16_t family) {
    return nftnl_nlmsg_build_hdr(tail(), type, family, NLM_F_CREATE | NLM_F_APPEND, ++sequence_);
  }
  void advance(nlmsghdr* message) {
    last_ = message;
    used_ += NLMSG_ALIGN(message->nlmsg_len);
  }

  std::string buffer_;
  size_t used_ = 0;
  uint32_t sequence_ = 0;
  nlmsghdr* last_ = nullptr;
};

constexpr uint32_t kIpv4DestinationOffset = 16;
constexpr uint32_t kIpv6DestinationOffset = 24;

// What stays inside passes: loopback, and the sandbox's own address.
void add_local_rules(Batch& batch, uint16_t table, const char* chain, uint8_t family) {
  const bool v4 = family == NFPROTO_IPV4;
  const auto destination = [&] {
    return v4 ? load_payload(NFT_PAYLOAD_NETWORK_HEADER, kIpv4DestinationOffset, sizeof(in_addr))
              : load_payload(NFT_PAYLOAD_NETWORK_HEADER, kIpv6DestinationOffset, sizeof(in6_addr));
  };
  const std::string own =
      v4 ? address_bytes(AF_INET, kGuestIpv4) : address_bytes(AF_INET6, kGuestIpv6);
  if (v4) {
    batch.rule(table, chain,
               {load_meta(NFT_META_NFPROTO), equals_number(family), destination(),
                mask_with({"\xff\0\0\0", 4}), equals({"\x7f\0\0\0", 4}), accept_packet()});
  } else {
    batch.rule(table, chain,
               {load_meta(NFT_META_NFPROTO), equals_number(family), destination(),
                equals(address_bytes(AF_INET6, "::1")), accept_packet()});
  }
  batch.rule(table, chain,
             {load_meta(NFT_META_NFPROTO), equals_number(family), destination(), equals(own),
              accept_packet()});
}

// Puts the first packet of each TCP connection into the relay's queue.
void add_dial_rule(Batch& batch, uint16_t table, Expr queue) {
  constexpr uint32_t kTcpFlagsOffset = 13;
  constexpr std::string_view kFinSynRstAck = "\x17";
  constexpr std::string_view kSyn = "\x02";
  batch.rule(table, kDialChain,
             {load_meta(NFT_META_L4PROTO), equals_number<uint8_t>(IPPROTO_TCP),
              load_payload(NFT_PAYLOAD_TRANSPORT_HEADER, kTcpFlagsOffset, 1),
              mask_with(kFinSynRstAck), equals(kSyn), queue});
}

Expr mark_is(DialMark mark) { return equals_number(static_cast<uint32_t>(mark)); }

void add_leave_chain(Batch& batch) {
  constexpr uint16_t kInet = NFPROTO_INET;
  batch.table(kInet);
  batch.chain(kInet, kLeaveChain, kLeavePriority);
  add_local_rules(batch, kInet, kLeaveChain, NFPROTO_IPV4);
  add_local_rules(batch, kInet, kLeaveChain, NFPROTO_IPV6);
  batch.rule(kInet, kLeaveChain,
             {load_meta(NFT_META_MARK), mark_is(DialMark::kRefused), load_meta(NFT_META_L4PROTO),
              equals_number<uint8_t>(IPPROTO_TCP), reject_with(NFT_REJECT_TCP_RST, 0)});
  batch.rule(kInet, kLeaveChain,
             {load_meta(NFT_META_MARK), mark_is(DialMark::kUnreachable),
              reject_with(NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_HOST_UNREACH)});
  for (const uint8_t family : {NFPROTO_IPV4, NFPROTO_IPV6}) {
    for (const uint8_t protocol : {uint8_t{IPPROTO_TCP}, uint8_t{IPPROTO_UDP}}) {
      batch.rule(kInet, kLeaveChain,
                 {load_meta(NFT_META_NFPROTO), equals_number(family), load_meta(NFT_META_L4PROTO),
                  equals_number(protocol), set_relay_port(), to_relay(family), accept_packet()});
    }
  }
  // Of the ways to say "unreachable" the only one that programs with datagrams are told of.
  batch.rule(kInet, kLeaveChain,
             {reject_with(NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_ADMIN_PROHIBITED)});
}

std::string with_queue_expression() {
  Batch batch;
  add_leave_chain(batch);
  batch.chain(NFPROTO_INET, kDialChain, kDialPriority);
  add_local_rules(batch, NFPROTO_INET, kDialChain, NFPROTO_IPV4);
  add_local_rules(batch, NFPROTO_INET, kDialChain, NFPROTO_IPV6);
  add_dial_rule(batch, NFPROTO_INET, queue_expression());
  return batch.finish();
}

// Targets of iptables know their own two families only.
std::string with_queue_target() {
  Batch batch;
  add_leave_chain(batch);
  for (const uint8_t family : {NFPROTO_IPV4, NFPROTO_IPV6}) {
    batch.table(family);
    batch.chain(family, kDialChain, kDialPriority);
    add_local_rules(batch, family, kDialChain, family);
    add_dial_rule(batch, family, queue_target());
  }
  return batch.finish();
}

std::string without_queue() {
  Batch batch;
  add_leave_chain(batch);
  return batch.finish();
}

}  // namespace

std::vector<RuleSet> make_rule_sets() {
  return {{.batch = with_queue_expression(), .asks_first = true},
          {.batch = with_queue_target(), .asks_first = true},
          {.batch = without_queue(), .asks_first = false}};
}

}  // namespace alcove::network
