// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <set>
#include <string>

#include "base/result.h"

namespace alcove::node {

// Copies of the agent program, kept by content hash below the data directory for as long as a
// sandbox runs them: an upgraded server leaves running agents as they are, and all sandboxes of
// one version share its page cache.
class AgentStore {
 public:
  // `directory` is made if missing.
  explicit AgentStore(std::string directory) : directory_(std::move(directory)) {}

  // Brings in the program at `path` and returns its hash.
  Result<std::string> add(const std::string& path);
  std::string path(const std::string& hash) const { return directory_ + "/" + hash; }
  // Deletes the copies that are not named.
  Result<void> keep_only(const std::set<std::string>& hashes);

 private:
  std::string directory_;
};

}  // namespace alcove::node
