// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <algorithm>

#include "base/strings.h"
#include "doctor/checks.h"

namespace alcove::doctor {
namespace {

struct Setting {
  const char* name;
  // Fewer than this is a warning; the fix raises it to `wanted`.
  uint64_t least;
  uint64_t wanted;
  const char* lost;
  // Some kernels are built without it, some containers do not show it.
  enum class Presence { kAlways, kNotEverywhere } presence = Presence::kAlways;
};
constexpr auto kNotEverywhere = Setting::Presence::kNotEverywhere;

constexpr const char* kFewNeighbours =
    "a sandbox with many network neighbours of its own keeps the machine from finding its router";
constexpr const char* kFewSandboxes = "only that many sandboxes can exist";

// The defaults of Debian 12 that are too small for hundreds of sandboxes, and what a hardened
// machine may have turned down.
constexpr Setting kSettings[] = {
    {"fs.inotify.max_user_instances", 8192, 65536,
     "editors, file watchers and dev servers in many sandboxes fail with \"too many open files\""},
    {"fs.inotify.max_user_watches", 524288, 1048576,
     "watching large directories inside fails with \"no space left on device\""},
    {"kernel.pid_max", 131072, 4194304, "all sandboxes together run out of process ids"},
    // Each terminal costs 25 KB of kernel memory, most of it charged to nobody: not more of them
    // than many sandboxes need.
    {"kernel.pty.max", 65536, 65536, "terminals cannot be opened when many sandboxes have some"},
    {"kernel.threads-max", 65536, 262144, "all sandboxes together run out of threads"},
    // The tables of neighbours are one for all network namespaces.
    {"net.ipv4.neigh.default.gc_thresh1", 8192, 8192, kFewNeighbours, kNotEverywhere},
    {"net.ipv4.neigh.default.gc_thresh2", 32768, 32768, kFewNeighbours, kNotEverywhere},
    {"net.ipv4.neigh.default.gc_thresh3", 65536, 65536, kFewNeighbours, kNotEverywhere},
    {"net.ipv6.neigh.default.gc_thresh1", 8192, 8192, kFewNeighbours, kNotEverywhere},
    {"net.ipv6.neigh.default.gc_thresh2", 32768, 32768, kFewNeighbours, kNotEverywhere},
    {"net.ipv6.neigh.default.gc_thresh3", 65536, 65536, kFewNeighbours, kNotEverywhere},
    {"net.core.somaxconn", 1024, 4096, "connections are dropped when many arrive at once"},
    {"user.max_user_namespaces", 10000, 65536, kFewSandboxes},
    {"user.max_pid_namespaces", 10000, 65536, kFewSandboxes},
    {"user.max_mnt_namespaces", 10000, 65536, kFewSandboxes},
    {"user.max_net_namespaces", 10000, 65536, kFewSandboxes},
    {"user.max_uts_namespaces", 10000, 65536, kFewSandboxes},
    {"user.max_ipc_namespaces", 10000, 65536, kFewSandboxes},
    {"user.max_cgroup_namespaces", 10000, 65536, kFewSandboxes},
    {"user.max_time_namespaces", 10000, 65536, kFewSandboxes},
};

std::string path_of(std::string name) {
  std::ranges::replace(name, '.', '/');
  return "/proc/sys/" + name;
}

}  // namespace

std::vector<Finding> check_sysctls(const System& system) {
  std::vector<Finding> findings;
  for (const Setting& setting : kSettings) {
    const std::string path = path_of(setting.name);
    const auto text = system.read(path);
    if (!text && setting.presence == kNotEverywhere) continue;
    const auto value = parse_number<uint64_t>(trim(text.value_or("")));
    if (value && *value >= setting.least) {
      findings.push_back(ok(setting.name, std::to_string(*value)));
      continue;
    }
    if (!value) {
      findings.push_back(warning(setting.name, "cannot be read", setting.lost,
                                 "mount /proc; in a container, with /proc/sys"));
      continue;
    }
    Finding& finding =
        findings.emplace_back(warning(setting.name, std::to_string(*value), setting.lost,
                                      cat("sysctl -w ", setting.name, "=", setting.wanted,
                                          " (`alcove doctor --fix` does it until the next boot)")));
    finding.fix = Fix{.path = path, .value = std::to_string(setting.wanted)};
  }
  return findings;
}

}  // namespace alcove::doctor
