// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sys/cgroup_fs.h"

namespace alcove::sys {

// The controllers that programs look at to size themselves.
inline constexpr std::array<std::string_view, 5> kShownControllers = {"memory", "cpu", "cpuacct",
                                                                      "cpuset", "pids"};

// Where this machine's cgroup hierarchies are mounted: v1 only, v2 only, or both (hybrid), each
// controller on one of them.
struct CgroupLayout {
  std::map<std::string, std::string> v1;  // controller -> mount point
  std::string v2;                         // mount point; empty if there is none
  std::set<std::string> v2_controllers;   // those that v2 offers
};

// Reads the hierarchies from the text of /proc/self/mountinfo and v2's controllers from its root.
Result<CgroupLayout> find_cgroup_layout(std::string_view mountinfo, CgroupFs& fs);

}  // namespace alcove::sys
