// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "doctor/probes.h"

namespace alcove::doctor {
namespace {

// A transaction of nf_tables: messages between a begin and an end mark.
class Batch {
 public:
  explicit Batch(uint8_t family) : family_(family) { mark(NFNL_MSG_BATCH_BEGIN); }

  void begin(uint16_t type, uint16_t flags) {
    start(static_cast<uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | type),
          static_cast<uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags), family_, 0);
  }
  void end() { set_size<uint32_t>(message_); }

  void add(uint16_t type, std::string_view value) {
    const size_t at = open(type);
    text_.append(value);
    close(at);
  }
  void add_text(uint16_t type, std::string_view value) { add(type, std::string(value) + '\0'); }
  void add_u8(uint16_t type, uint8_t value) { add(type, std::string(1, static_cast<char>(value))); }
  void add_u32(uint16_t type, uint32_t value) {
    const uint32_t wire = htonl(value);
    add(type, {reinterpret_cast<const char*>(&wire), sizeof wire});
  }
  void add_u16(uint16_t type, uint16_t value) {
    const uint16_t wire = htons(value);
    add(type, {reinterpret_cast<const char*>(&wire), sizeof wire});
  }
  void nest(uint16_t type, const std::function<void()>& content) {
    const size_t at = open(static_cast<uint16_t>(type | NLA_F_NESTED));
    content();
    close(at);
  }

  // Sends everything; 0 or the first error that the kernel answers.
  int send() {
    mark(NFNL_MSG_BATCH_END);
    const UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER));
    if (!socket.valid()) return errno;
    if (::send(socket.get(), text_.data(), text_.size(), 0) < 0) return errno;
    // One answer per message that asked for one.
    for (int left = acknowledged_; left > 0;) {
      char buffer[8192];
      const ssize_t size = ::recv(socket.get(), buffer, sizeof buffer, 0);
      if (size < 0) return errno;
      auto length = static_cast<unsigned>(size);
      for (auto* header = reinterpret_cast<nlmsghdr*>(buffer); NLMSG_OK(header, length);
           header = NLMSG_NEXT(header, length)) {
        if (header->nlmsg_type != NLMSG_ERROR) continue;
        const int error = static_cast<nlmsgerr*>(NLMSG_DATA(header))->error;
        if (error != 0) return -error;
        --left;
      }
    }
    return 0;
  }

 private:
  void start(uint16_t type, uint16_t flags, uint8_t family, uint16_t resource) {
    message_ = text_.size();
    const nlmsghdr header{.nlmsg_len = 0,
                          .nlmsg_type = type,
                          .nlmsg_flags = flags,
                          .nlmsg_seq = ++sequence_,
                          .nlmsg_pid = 0};
    const nfgenmsg general{
        .nfgen_family = family, .version = NFNETLINK_V0, .res_id = htons(resource)};
    text_.append(reinterpret_cast<const char*>(&header), sizeof header);
    text_.append(reinterpret_cast<const char*>(&general), sizeof general);
    if ((flags & NLM_F_ACK) != 0) ++acknowledged_;
  }
  void mark(uint16_t type) {
    start(type, NLM_F_REQUEST, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
    end();
  }
  size_t open(uint16_t type) {
    const size_t at = text_.size();
    const nlattr header{.nla_len = 0, .nla_type = type};
    text_.append(reinterpret_cast<const char*>(&header), sizeof header);
    return at;
  }
  void close(size_t at) {
    set_size<uint16_t>(at);
    text_.append((4 - text_.size() % 4) % 4, '\0');
  }
  // The length of a message or attribute is its first field.
  template <typename T>
  void set_size(size_t at) {
    const T size = static_cast<T>(text_.size() - at);
    std::memcpy(text_.data() + at, &size, sizeof size);
  }

  const uint8_t family_;
  std::string text_;
  size_t message_ = 0;
  uint32_t sequence_ = 0;
  int acknowledged_ = 0;
};

constexpr std::string_view kTable = "alcove";
constexpr std::string_view kChain = "probe";
constexpr uint32_t kBeforeEverything = static_cast<uint32_t>(-300);

void add_expression(Batch& batch, std::string_view name, const std::function<void()>& data) {
  batch.nest(NFTA_LIST_ELEM, [&] {
    batch.add_text(NFTA_EXPR_NAME, name);
    batch.nest(NFTA_EXPR_DATA, data);
  });
}

// A table, a chain of incoming packets and one rule in it; no rule if `expressions` is empty.
int try_rule(uint8_t family, const std::function<void(Batch&)>& expressions) {
  Batch batch(family);
  batch.begin(NFT_MSG_NEWTABLE, NLM_F_CREATE);
  batch.add_text(NFTA_TABLE_NAME, kTable);
  batch.end();
  batch.begin(NFT_MSG_NEWCHAIN, NLM_F_CREATE);
  batch.add_text(NFTA_CHAIN_TABLE, kTable);
  batch.add_text(NFTA_CHAIN_NAME, kChain);
  batch.nest(NFTA_CHAIN_HOOK, [&] {
    batch.add_u32(NFTA_HOOK_HOOKNUM, NF_INET_PRE_ROUTING);
    batch.add_u32(NFTA_HOOK_PRIORITY, kBeforeEverything);
  });
  batch.add_text(NFTA_CHAIN_TYPE, "filter");
  batch.end();
  if (expressions) {
    batch.begin(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
    batch.add_text(NFTA_RULE_TABLE, kTable);
    batch.add_text(NFTA_RULE_CHAIN, kChain);
    batch.nest(NFTA_RULE_EXPRESSIONS, [&] { expressions(batch); });
    batch.end();
  }
  return batch.send();
}

// A table of both families may lack what a table of one has; sandboxes have the former.
int try_tproxy(uint8_t family) {
  return try_rule(NFPROTO_INET, [family](Batch& batch) {
    add_expression(batch, "immediate", [&] {
      batch.add_u32(NFTA_IMMEDIATE_DREG, NFT_REG_1);
      batch.nest(NFTA_IMMEDIATE_DATA, [&] { batch.add_u16(NFTA_DATA_VALUE, 15001); });
    });
    add_expression(batch, "tproxy", [&] {
      batch.add_u32(NFTA_TPROXY_FAMILY, family);
      batch.add_u32(NFTA_TPROXY_REG_PORT, NFT_REG_1);
    });
  });
}

int try_reject(uint32_t type, uint8_t code) {
  return try_rule(NFPROTO_INET, [type, code](Batch& batch) {
    add_expression(batch, "reject", [&] {
      batch.add_u32(NFTA_REJECT_TYPE, type);
      batch.add_u8(NFTA_REJECT_ICMP_CODE, code);
    });
  });
}

int try_own_queue() {
  return try_rule(NFPROTO_INET, [](Batch& batch) {
    add_expression(batch, "queue", [&] {
      batch.add_u16(NFTA_QUEUE_NUM, 0);
      batch.add_u16(NFTA_QUEUE_TOTAL, 1);
    });
  });
}

// Kernels without nft's own queue may have the one of iptables, which knows its own families only.
int try_iptables_queue(uint8_t family) {
  return try_rule(family, [](Batch& batch) {
    add_expression(batch, "target", [&] {
      batch.add_text(NFTA_TARGET_NAME, "NFQUEUE");
      batch.add_u32(NFTA_TARGET_REV, 0);
      // struct xt_NFQ_info: the number of the queue, padded.
      batch.add(NFTA_TARGET_INFO, std::string_view("\0\0\0\0\0\0\0\0", 8));
    });
  });
}

int first_error(int one, int other) { return one != 0 ? one : other; }

}  // namespace

int probe_netfilter(NetfilterNeed need) {
  if (::unshare(CLONE_NEWNET) != 0) return errno;
  switch (need) {
    case NetfilterNeed::kTables:
      return try_rule(NFPROTO_INET, {});
    case NetfilterNeed::kReject:
      return first_error(try_reject(NFT_REJECT_TCP_RST, 0),
                         try_reject(NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_ADMIN_PROHIBITED));
    case NetfilterNeed::kTproxy:
      return first_error(try_tproxy(NFPROTO_IPV4), try_tproxy(NFPROTO_IPV6));
    case NetfilterNeed::kQueue:
      if (try_own_queue() == 0) return 0;
      return first_error(try_iptables_queue(NFPROTO_IPV4), try_iptables_queue(NFPROTO_IPV6));
  }
  return EINVAL;
}

}  // namespace alcove::doctor
