// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>

#include "base/result.h"

namespace alcove::jail {

// Some things the kernel counts per user for the whole machine: namespaces, what inotify and
// fanotify hold, POSIX message queues, queued signals and timers. What happens in a user namespace
// counts for the user who made it, in the namespace above. So each sandbox's namespace is made by
// an id of its own, and the template's namespace says how much one such id may take.

// In a new template namespace: how much each sandbox below it may take. Returns 0 or an errno.
int limit_shares();

// Before the launcher makes template namespaces: the sandboxes of one together may take all that
// the host allows.
void lift_host_limits();

// While it lives, this process makes namespaces as `user` of its own namespace, with all its
// capabilities and the limits of one sandbox.
class SandboxMaker {
 public:
  static Result<SandboxMaker> become(uint32_t user);
  ~SandboxMaker();
  SandboxMaker(SandboxMaker&& other) noexcept;
  SandboxMaker& operator=(SandboxMaker&&) = delete;

 private:
  SandboxMaker() = default;
  bool active_ = true;
};

}  // namespace alcove::jail
