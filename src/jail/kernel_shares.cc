// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "jail/kernel_shares.h"

#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "sys/file_io.h"

namespace alcove::jail {
namespace {

struct Share {
  const char* sysctl;
  const char* per_sandbox;
};
// Namespaces for containers and for hundreds of browsers' own sandboxes. The kernel takes its time
// to take a network namespace apart, and counts it until then.
constexpr Share kShares[] = {
    {"/proc/sys/user/max_inotify_instances", "512"},
    {"/proc/sys/user/max_inotify_watches", "65536"},
    {"/proc/sys/user/max_fanotify_groups", "16"},
    {"/proc/sys/user/max_fanotify_marks", "8192"},
    {"/proc/sys/user/max_user_namespaces", "512"},
    {"/proc/sys/user/max_pid_namespaces", "512"},
    {"/proc/sys/user/max_mnt_namespaces", "512"},
    {"/proc/sys/user/max_uts_namespaces", "512"},
    {"/proc/sys/user/max_ipc_namespaces", "512"},
    {"/proc/sys/user/max_cgroup_namespaces", "512"},
    {"/proc/sys/user/max_time_namespaces", "512"},
    {"/proc/sys/user/max_net_namespaces", "256"},
};

// Bytes in message queues: the usual limit of one user, and what part of it a sandbox gets where
// the host's cannot be lifted.
constexpr rlim_t kQueueBytes = 819'200;
constexpr rlim_t kQueueParts = 4;
constexpr rlim_t kQueuedSignals = 8192;

// The lower of the two: raising is not what this is for.
Result<void> lower_limit(decltype(RLIMIT_MSGQUEUE) resource, rlim_t value) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) return fail_errno(errno, "getrlimit");
  limit.rlim_cur = std::min(limit.rlim_max, value);
  if (::setrlimit(resource, &limit) != 0) return fail_errno(errno, "setrlimit");
  return {};
}

rlim_t queue_bytes() {
  rlimit limit{};
  ::getrlimit(RLIMIT_MSGQUEUE, &limit);
  return limit.rlim_max == RLIM_INFINITY ? kQueueBytes
                                         : std::min(kQueueBytes, limit.rlim_max / kQueueParts);
}

}  // namespace

int limit_shares() {
  for (const Share& share : kShares) {
    const auto written = sys::write_file(share.sysctl, share.per_sandbox);
    // A kernel that was built without it counts nothing.
    if (!written && written.error().error_number() != ENOENT) return written.error().error_number();
  }
  return 0;
}

void lift_host_limits() {
  const rlimit all{RLIM_INFINITY, RLIM_INFINITY};
  for (const auto resource : {RLIMIT_MSGQUEUE, RLIMIT_SIGPENDING}) {
    // Without CAP_SYS_RESOURCE the host's limits stay, for all sandboxes together.
    (void)::setrlimit(resource, &all);
  }
}

Result<SandboxMaker> SandboxMaker::become(uint32_t user) {
  ALCOVE_TRY(lower_limit(RLIMIT_MSGQUEUE, queue_bytes()));
  ALCOVE_TRY(lower_limit(RLIMIT_SIGPENDING, kQueuedSignals));
  // Keeps the capabilities over the change of the id; a new user namespace starts without it.
  if (::prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) != 0) {
    return fail_errno(errno, "set securebits");
  }
  if (::seteuid(user) != 0) return fail_errno(errno, "seteuid");
  // A change of the id hands /proc/<pid> to the host's root, and the maps could not be opened.
  if (::prctl(PR_SET_DUMPABLE, 1) != 0) return fail_errno(errno, "set dumpable");
  return SandboxMaker();
}

SandboxMaker::SandboxMaker(SandboxMaker&& other) noexcept
    : active_(std::exchange(other.active_, false)) {}

SandboxMaker::~SandboxMaker() {
  if (!active_) return;
  (void)!::seteuid(0);
  (void)::prctl(PR_SET_DUMPABLE, 1);
}

}  // namespace alcove::jail
