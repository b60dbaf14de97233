// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <linux/filter.h>

#include <vector>

#include "base/result.h"

namespace alcove::jail {

// Which system calls a sandbox may make: an allow-list. What it does not know answers ENOSYS, as an
// older kernel would, so that programs fall back; what it knows to be dangerous answers EPERM.
Result<std::vector<sock_filter>> compile_seccomp_policy();

// Puts this process and all it will ever start under the filter. Needs CAP_SYS_ADMIN and never sets
// no_new_privs, with which sudo would not work.
Result<void> load_seccomp_filter(const std::vector<sock_filter>& filter);

}  // namespace alcove::jail
