// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "jail/namespace_factory.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/strings.h"
#include "jail/kernel_shares.h"
#include "sys/file_io.h"
#include "sys/loopback_network.h"
#include "sys/netlink.h"
#include "sys/process.h"

namespace alcove::jail {
namespace {

struct Prepared {
  int error = 0;
  size_t rule_set = 0;
};

// A process that does nothing but keep new namespaces alive until they are held by descriptors.
class Holder {
 public:
  // `prepare` runs in the new process.
  template <typename Prepare>
  static Result<Holder> start(uint64_t flags, Prepare prepare) {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) return fail_errno(errno, "pipe");
    const UniqueFd read_end(fds[0]);
    UniqueFd write_end(fds[1]);
    const pid_t pid = sys::clone_process({.flags = flags});
    if (pid < 0) return fail_errno(errno, "clone namespaces");
    if (pid == 0) {
      const Prepared prepared = prepare();
      (void)!::write(write_end.get(), &prepared, sizeof prepared);
      for (;;) ::pause();
    }
    Holder holder(pid);
    write_end.reset();
    Prepared& prepared = holder.prepared_;
    if (::read(read_end.get(), &prepared, sizeof prepared) != sizeof prepared) prepared.error = EIO;
    if (prepared.error != 0) return fail_errno(prepared.error, "prepare namespaces");
    return holder;
  }
  Holder(Holder&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), prepared_(other.prepared_) {}
  Holder& operator=(Holder&&) = delete;
  ~Holder() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  Result<void> write_maps(uint32_t outside, uint32_t count) const {
    const std::string map = cat("0 ", outside, " ", count);
    ALCOVE_TRY(sys::write_file(cat("/proc/", pid_, "/uid_map"), map));
    return sys::write_file(cat("/proc/", pid_, "/gid_map"), map);
  }
  size_t rule_set() const { return prepared_.rule_set; }
  Result<UniqueFd> open(const char* name) const {
    return sys::open_file(cat("/proc/", pid_, "/ns/", name), O_RDONLY);
  }

 private:
  explicit Holder(pid_t pid) : pid_(pid) {}
  pid_t pid_;
  Prepared prepared_;
};

int load_rules(const network::RuleSet& rules) {
  const auto socket = sys::open_netlink(NETLINK_NETFILTER);
  if (!socket) return socket.error().error_number();
  return sys::run_netlink(socket->get(), rules.batch);
}

Prepared prepare_network(std::span<const network::RuleSet> rule_sets) {
  int error = ENOENT;
  size_t chosen = 0;
  for (; chosen < rule_sets.size(); ++chosen) {
    error = load_rules(rule_sets[chosen]);
    // The next one helps only against a kernel that does not know this one.
    if (error != ENOENT && error != EOPNOTSUPP) break;
  }
  if (error != 0) return {error, 0};
  in_addr v4{};
  in6_addr v6{};
  ::inet_pton(AF_INET, network::kGuestIpv4, &v4);
  ::inet_pton(AF_INET6, network::kGuestIpv6, &v6);
  error = sys::lead_ipv4_to_loopback(v4);
  // A kernel without IPv6 is no reason to have no sandboxes.
  if (error == 0 && rule_sets[chosen].asks_first) (void)sys::lead_ipv6_to_loopback(v6);
  return {error, chosen};
}

}  // namespace

Result<UniqueFd> make_template_namespace(uint32_t block) {
  ALCOVE_TRY_ASSIGN(const Holder holder,
                    Holder::start(CLONE_NEWUSER, [] { return Prepared{.error = limit_shares()}; }));
  ALCOVE_TRY(holder.write_maps(block * network::kIdsPerBlock, network::kIdsPerBlock));
  return holder.open("user");
}

Result<void> enter_template_namespace(int template_ns) {
  if (::setns(template_ns, CLONE_NEWUSER) != 0) return fail_errno(errno, "enter user namespace");
  if (::setgroups(0, nullptr) != 0) return fail_errno(errno, "setgroups");
  if (::setresgid(0, 0, 0) != 0) return fail_errno(errno, "setresgid");
  if (::setresuid(0, 0, 0) != 0) return fail_errno(errno, "setresuid");
  // A change of ids hands /proc/<pid> to the host's root, and the maps could not be opened.
  if (::prctl(PR_SET_DUMPABLE, 1) != 0) return fail_errno(errno, "set dumpable");
  return {};
}

Result<NewPair> make_namespace_pair(uint32_t range_index,
                                    std::span<const network::RuleSet> rule_sets) {
  ALCOVE_TRY_ASSIGN(const SandboxMaker maker,
                    SandboxMaker::become(range_index * network::kIdsPerRange));
  ALCOVE_TRY_ASSIGN(const Holder holder, Holder::start(CLONE_NEWUSER | CLONE_NEWNET, [rule_sets] {
                      return prepare_network(rule_sets);
                    }));
  ALCOVE_TRY(holder.write_maps(range_index * network::kIdsPerRange, network::kIdsPerRange));
  NewPair pair;
  pair.rule_set = holder.rule_set();
  ALCOVE_TRY_ASSIGN(pair.user_ns, holder.open("user"));
  ALCOVE_TRY_ASSIGN(pair.net_ns, holder.open("net"));
  return pair;
}

}  // namespace alcove::jail
