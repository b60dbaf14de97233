// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>

#include "http/connection_io.h"

namespace alcove::http {

// Writes `count` bytes of a file from `offset` to the connection: sendfile(2), or read and write
// where the stream or the file system does not allow it. kDataLoss if the file is shorter.
Task<Result<void>> send_file(ConnectionIo& io, int fd, uint64_t offset, uint64_t count);

}  // namespace alcove::http
