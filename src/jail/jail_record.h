// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "network/egress_policy.h"
#include "network/id_range.h"

namespace alcove::jail {

// What a later server needs to find a sandbox again.
struct JailRecord {
  pid_t pid = 0;
  uint64_t start_time = 0;  // with the pid, names the process for good
  network::IdRange range;
  std::string pool_key;
  std::string cgroup_prefix;
  network::EgressPolicy egress;
};

std::string to_json(const JailRecord& record);
Result<JailRecord> parse_jail_record(const std::string& json);

}  // namespace alcove::jail
