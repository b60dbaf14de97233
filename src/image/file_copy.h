// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/stat.h>

#include "base/result.h"

namespace alcove::image {

// Copies the content of an open file to another, sharing blocks where the file system can.
Result<void> copy_content(int from_fd, int to_fd);

// Gives the file behind an O_PATH descriptor owner, mode (not for symbolic links) and times.
Result<void> apply_attributes(int path_fd, const struct stat& st);

}  // namespace alcove::image
