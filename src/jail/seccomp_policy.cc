// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "jail/seccomp_policy.h"

#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <span>

#include "base/strings.h"
#include "base/unique_fd.h"
#include "jail/seccomp_lists.h"

namespace alcove::jail {
namespace {

using Context = std::unique_ptr<void, decltype(&::seccomp_release)>;

Result<void> check(int status, std::string_view what) {
  if (status < 0) return fail_errno(-status, cat("seccomp: ", what));
  return {};
}

scmp_arg_cmp equal(unsigned argument, uint64_t value) { return {argument, SCMP_CMP_EQ, value, 0}; }

Result<void> add_rule(const Context& context, uint32_t action, std::string_view name, int number,
                      std::initializer_list<scmp_arg_cmp> conditions = {}) {
  return check(
      ::seccomp_rule_add_array(context.get(), action, number,
                               static_cast<unsigned>(conditions.size()), conditions.begin()),
      name);
}

Result<int> find_number(const char* name) {
  const int number = ::seccomp_syscall_resolve_name(name);
  if (number == __NR_SCMP_ERROR) return fail(Code::kInternal, cat("unknown system call ", name));
  return number;
}

Result<void> add_names(const Context& context, uint32_t action,
                       std::span<const char* const> names) {
  for (const char* name : names) {
    ALCOVE_TRY_ASSIGN(const int number, find_number(name));
    ALCOVE_TRY(add_rule(context, action, name, number));
  }
  return {};
}

// Conditions compare all 64 bits while the kernel looks at the lower 32 only, so rules on arguments
// must list what is allowed: a rule on what is denied could be passed by setting upper bits.

Result<void> add_socket_rules(const Context& context) {
  const uint32_t refuse = SCMP_ACT_ERRNO(EAFNOSUPPORT);
  for (const unsigned family : {AF_UNIX, AF_INET, AF_INET6, AF_PACKET}) {
    ALCOVE_TRY(add_rule(context, SCMP_ACT_ALLOW, "socket", SCMP_SYS(socket), {equal(0, family)}));
  }
  for (const unsigned protocol : kAllowedNetlinkProtocols) {
    ALCOVE_TRY(add_rule(context, SCMP_ACT_ALLOW, "socket", SCMP_SYS(socket),
                        {equal(0, AF_NETLINK), equal(2, protocol)}));
  }
  // AF_PACKET is the highest that is allowed.
  ALCOVE_TRY(add_rule(context, refuse, "socket", SCMP_SYS(socket),
                      {scmp_arg_cmp{0, SCMP_CMP_GT, AF_PACKET, 0}}));
  for (unsigned family = 0; family < AF_PACKET; ++family) {
    if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK) {
      continue;
    }
    ALCOVE_TRY(add_rule(context, refuse, "socket", SCMP_SYS(socket), {equal(0, family)}));
  }
  return add_rule(context, SCMP_ACT_ALLOW, "socketpair", SCMP_SYS(socketpair), {equal(0, AF_UNIX)});
}

// gdb switches address randomisation off; 0xffffffff asks for the current value.
Result<void> add_personality_rules(const Context& context) {
  for (const unsigned long persona :
       {0ul, static_cast<unsigned long>(ADDR_NO_RANDOMIZE), static_cast<unsigned long>(PER_LINUX32),
        static_cast<unsigned long>(UNAME26), 0xfffffffful}) {
    ALCOVE_TRY(add_rule(context, SCMP_ACT_ALLOW, "personality", SCMP_SYS(personality),
                        {equal(0, persona)}));
  }
  return {};
}

Result<std::vector<sock_filter>> export_filter(const Context& context) {
  const UniqueFd file(::memfd_create("seccomp", MFD_CLOEXEC));
  if (!file.valid()) return fail_errno(errno, "memfd_create");
  ALCOVE_TRY(check(::seccomp_export_bpf(context.get(), file.get()), "export"));
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  std::vector<sock_filter> filter(static_cast<size_t>(size) / sizeof(sock_filter));
  if (::pread(file.get(), filter.data(), static_cast<size_t>(size), 0) != size) {
    return fail_errno(errno, "read the compiled filter");
  }
  return filter;
}

}  // namespace

Result<std::vector<sock_filter>> compile_seccomp_policy() {
  const Context context(::seccomp_init(SCMP_ACT_ERRNO(ENOSYS)), &::seccomp_release);
  if (!context) return fail(Code::kInternal, "seccomp_init");
  auto set = [&](scmp_filter_attr attribute, uint32_t value) {
    return check(::seccomp_attr_set(context.get(), attribute, value), "attribute");
  };
  // i386 and x32 calls are not there, as on a kernel that was built without them.
  ALCOVE_TRY(set(SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)));
  ALCOVE_TRY(set(SCMP_FLTATR_CTL_NNP, 0));
  // A binary tree over the numbers instead of a chain.
  ALCOVE_TRY(set(SCMP_FLTATR_CTL_OPTIMIZE, 2));
  ALCOVE_TRY(add_names(context, SCMP_ACT_ALLOW, kAllowedCalls));
  ALCOVE_TRY(add_names(context, SCMP_ACT_ERRNO(EPERM), kRefusedCalls));
  for (const int number : kAllowedNewCalls) {
    ALCOVE_TRY(add_rule(context, SCMP_ACT_ALLOW, "new call", number));
  }
  // sync() would flush the file systems of the whole host. It succeeds and does nothing, which is
  // what it does to a sandbox's own files anyway: their overlay is volatile.
  ALCOVE_TRY(add_rule(context, SCMP_ACT_ERRNO(0), "sync", SCMP_SYS(sync)));
  ALCOVE_TRY(add_socket_rules(context));
  ALCOVE_TRY(add_personality_rules(context));
  return export_filter(context);
}

Result<void> load_seccomp_filter(const std::vector<sock_filter>& filter) {
  const sock_fprog program{static_cast<unsigned short>(filter.size()),
                           const_cast<sock_filter*>(filter.data())};
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) {
    return fail_errno(errno, "load seccomp filter");
  }
  return {};
}

}  // namespace alcove::jail
