// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <optional>
#include <string>

#include "agent/file_pools.h"
#include "agent/metadata.h"
#include "agent/paths.h"
#include "agent/users.h"
#include "http/exchange.h"
#include "net/task.h"

namespace alcove::agent {

// A POST /files whose caller may write.
struct UploadRequest {
  // From the query; without it each part of a form names its own.
  std::optional<std::string> path;
  PathBase base;
  User owner;
  Metadata metadata;
  bool compressed = false;
};

// Receives the body, a form or a single file, and answers with the list of files.
Task<void> receive_upload(http::Exchange& exchange, FilePools& pools, UploadRequest request);

}  // namespace alcove::agent
