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

// What the rules of a sandbox are made of (network/rule_sets.cc).
enum class NetfilterNeed { kTables, kReject, kTproxy, kQueue };
// Makes rules of that kind in a new network namespace.
int probe_netfilter(NetfilterNeed need);

}  // namespace alcove::doctor
