// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "sys/cgroup_layout.h"

namespace alcove::sys {

struct CgroupLimits {
  uint64_t memory_bytes = 0;
  uint32_t cpus = 1;    // quota, in whole CPUs
  std::string cpu_set;  // "0-1,4"; empty: all
  uint32_t pids = 0;
};

struct CgroupUsage {
  uint64_t memory_bytes = 0;
  uint64_t file_cache_bytes = 0;
  uint64_t cpu_microseconds = 0;
  uint32_t pids = 0;
};

// What a new process needs to join a cgroup. Only trusted code may see these: a `tasks` file that
// root opened moves any process that its holder can name.
struct CgroupEntry {
  std::vector<UniqueFd> v1_tasks;  // the process writes "0" to each
  UniqueFd v2_dir;                 // for CLONE_INTO_CGROUP; invalid if there is no v2
};

// The cgroups `<prefix>/<name>` in every hierarchy that is used. Thread-safe for different names.
class CgroupTree {
 public:
  // Makes the prefix directories and hands the controllers down to them.
  static Result<CgroupTree> open(CgroupLayout layout, std::string prefix, CgroupFs& fs);

  // Makes the cgroup with its limits; nothing is left on failure.
  Result<void> create(const std::string& name, const CgroupLimits& limits) const;
  Result<CgroupEntry> enter(const std::string& name) const;
  Result<CgroupUsage> usage(const std::string& name) const;
  Result<bool> contains(const std::string& name, pid_t pid) const;

  // The processes that are in it now.
  std::vector<pid_t> members(const std::string& name) const;

  // Every name in any of the hierarchies.
  std::set<std::string> list() const;

  // Kills what is inside, again and again until nothing is left.
  Result<void> kill(const std::string& name, std::chrono::steady_clock::time_point deadline) const;
  // Removes the cgroup; success if there is none. A dying process keeps it for a moment (EBUSY):
  // tries until the deadline.
  Result<void> remove(const std::string& name,
                      std::chrono::steady_clock::time_point deadline) const;
  // Removes the prefix directories if they are empty.
  void remove_prefix() const;

  const std::string& prefix() const { return prefix_; }
  // The CPUs that sandboxes may use.
  const std::vector<uint32_t>& cpus() const { return cpus_; }

 private:
  CgroupTree(CgroupLayout layout, std::string prefix, CgroupFs& fs);
  Result<void> prepare() const;
  Result<void> prepare_v1_cpuset() const;
  Result<void> prepare_v2() const;
  Result<void> find_cpus();
  Result<void> try_create(const std::string& name, const CgroupLimits& limits) const;
  // The directory of `name` where the controller lives; empty if there is no such controller.
  std::string dir(const std::string& controller, const std::string& name) const;
  std::string v2_dir(const std::string& name) const;
  std::vector<std::string> bases() const;
  bool on_v1(const std::string& controller) const { return layout_.v1.contains(controller); }
  Result<void> write_limits(const std::string& name, const CgroupLimits& limits) const;

  CgroupLayout layout_;
  std::string prefix_;
  CgroupFs* fs_;
  // "<mount point>/<prefix>" of every hierarchy in use.
  std::vector<std::string> v1_bases_;
  std::string v2_base_;
  std::vector<uint32_t> cpus_;
};

// "0-2,5" -> 0 1 2 5.
std::vector<uint32_t> parse_cpu_list(std::string_view text);

}  // namespace alcove::sys
