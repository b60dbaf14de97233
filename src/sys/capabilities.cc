// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "sys/capabilities.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace alcove::sys {

Result<void> keep_only_capabilities(std::initializer_list<int> kept) {
  uint64_t mask = 0;
  for (const int capability : kept) mask |= 1ull << capability;
  // Fails with EINVAL after the last one that the kernel knows.
  for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability) >= 0; ++capability) {
    if (std::ranges::find(kept, capability) != kept.end()) continue;
    if (::prctl(PR_CAPBSET_DROP, capability) != 0) return fail_errno(errno, "drop capability");
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  for (int i = 0; i < 2; ++i) {
    data[i].effective = data[i].permitted = static_cast<uint32_t>(mask >> (32 * i));
  }
  if (::syscall(SYS_capset, &header, data) != 0) return fail_errno(errno, "capset");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail_errno(errno, "no_new_privs");
  return {};
}

}  // namespace alcove::sys
