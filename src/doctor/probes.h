// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>

#include "doctor/system.h"

namespace alcove::doctor {

// Attempts, to be made in a child process (child_process.h): each returns 0 or an errno.

int probe(Feature feature);
int probe_idmap(const std::string& directory);
int probe_clone_into_cgroup(const std::string& cgroup2);

enum class NetfilterNeed { kTables, kTproxy, kQueue };
// Makes a rule of that kind in a new network namespace.
int probe_netfilter(NetfilterNeed need);

}  // namespace alcove::doctor
