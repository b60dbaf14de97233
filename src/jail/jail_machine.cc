// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "jail/jail_machine.h"

#include "base/strings.h"
#include "network/id_range.h"
#include "sys/fuse_connections.h"
#include "sys/netns.h"
#include "sys/process.h"

namespace alcove::jail {
namespace {

// How long an end takes when nothing hangs, on a busy machine.
constexpr std::chrono::milliseconds kUsualEnd{200};
// A process in an uninterruptible call (a slow disk) delays the end of its pid namespace.
constexpr std::chrono::seconds kEndTimeout{30};
constexpr std::chrono::seconds kRemoveTimeout{10};

}  // namespace

Result<UniqueFd> JailMachine::connect(uint16_t port, Family family) {
  return sys::connect_loopback_in(netns_->get(), state_->home_netns.get(),
                                  family == Family::kV4 ? sys::IpFamily::kV4 : sys::IpFamily::kV6,
                                  port);
}

Result<sandbox::Usage> JailMachine::usage() {
  ALCOVE_TRY_ASSIGN(const sys::CgroupUsage usage, state_->cgroups.usage(id_.str()));
  return sandbox::Usage{.memory_bytes = usage.memory_bytes,
                        .memory_cache_bytes = usage.file_cache_bytes,
                        .cpu_microseconds = usage.cpu_microseconds,
                        .pids = usage.pids};
}

// The pid namespace ends with its pid 1, and every process in it.
void JailMachine::kill() { sys::kill_by_pidfd(pidfd_.get()); }

void JailMachine::free_stuck() {
  // Who cannot have it done waits for the machine's next boot.
  (void)sys::abort_fuse_connections(record_.range.first_id(), network::kIdsPerRange);
}

Result<void> JailMachine::destroy() {
  const std::lock_guard guard(mutex_);
  if (destroyed_) return {};
  const auto now = std::chrono::steady_clock::now();
  if (!sys::wait_by_pidfd(pidfd_.get(), now + kUsualEnd)) free_stuck();
  if (!sys::wait_by_pidfd(pidfd_.get(), now + kEndTimeout)) {
    return fail(Code::kDeadlineExceeded, cat("sandbox ", id_.str(), " does not end"));
  }
  ALCOVE_TRY(state_->cgroups.remove(id_.str(), now + kEndTimeout + kRemoveTimeout));
  destroyed_ = true;
  if (state_->options.relay) state_->options.relay->close(id_);
  state_->pairs.give_back(record_.pool_key, record_.range);
  return {};
}

}  // namespace alcove::jail
