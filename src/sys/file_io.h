// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <fcntl.h>

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace alcove::sys {

// open(2) with O_CLOEXEC added.
Result<UniqueFd> open_file(const std::string& path, int flags, mode_t mode = 0);

// The whole content; meant for small files (/proc, cgroups, settings).
Result<std::string> read_file(const std::string& path);

// Writes to a file that exists, in one write(2), as kernel interfaces ask.
Result<void> write_file(const std::string& path, std::string_view content);

}  // namespace alcove::sys
