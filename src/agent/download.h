// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>

#include "agent/file_pools.h"
#include "http/exchange.h"
#include "net/task.h"

namespace alcove::agent {

// Answers GET /files for a resolved path, after all checks of the caller's rights.
Task<void> send_download(http::Exchange& exchange, FileJobs jobs, std::string path);

}  // namespace alcove::agent
