// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "sys/cgroup_layout.h"

#include <algorithm>
#include <array>

#include "base/mountinfo.h"
#include "base/strings.h"

namespace alcove::sys {
namespace {

constexpr std::array<std::string_view, 6> kControllers = {"memory", "cpu",     "cpuset",
                                                          "pids",   "freezer", "cpuacct"};

}  // namespace

Result<CgroupLayout> find_cgroup_layout(std::string_view mountinfo, CgroupFs& fs) {
  CgroupLayout layout;
  for (const std::string_view line : split(mountinfo, '\n')) {
    const auto fields = split(line, ' ');
    const auto dash = std::ranges::find(fields, "-");
    if (fields.size() < 10 || fields.end() - dash < 4) continue;
    const std::string_view type = dash[1];
    const std::string mount_point = unescape_mountinfo(fields[4]);
    if (type == "cgroup2" && layout.v2.empty()) layout.v2 = mount_point;
    if (type != "cgroup") continue;
    for (const std::string_view option : split(dash[3], ',')) {
      if (std::ranges::find(kControllers, option) == kControllers.end()) continue;
      layout.v1.try_emplace(std::string(option), mount_point);
    }
  }
  if (!layout.v2.empty()) {
    ALCOVE_TRY_ASSIGN(const std::string offered, fs.read(layout.v2 + "/cgroup.controllers"));
    for (const std::string_view name : split(trim(offered), ' ')) {
      if (!name.empty()) layout.v2_controllers.emplace(name);
    }
  }
  for (const std::string_view needed : {"memory", "cpu", "pids"}) {
    const std::string name(needed);
    if (!layout.v1.contains(name) && !layout.v2_controllers.contains(name)) {
      return fail(Code::kFailedPrecondition,
                  cat("no cgroup hierarchy with the ", name,
                      " controller is mounted (see /proc/self/mountinfo)"));
    }
  }
  return layout;
}

}  // namespace alcove::sys
