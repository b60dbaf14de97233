// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace alcove::agent {

// Opens with O_CLOEXEC, retried after signals. The error names the path.
Result<UniqueFd> open_file(const std::string& path, int flags, unsigned mode = 0);

// The content of a regular file; other kinds and longer files are refused.
Result<std::string> read_regular_file(const std::string& path, size_t limit);

// At most buffer_size bytes, 0 at the end of the file.
Result<size_t> read_once(int fd, char* buffer, size_t buffer_size);

// All of it, in as few write() calls as the kernel allows.
Result<void> write_all(int fd, std::string_view data);

}  // namespace alcove::agent
