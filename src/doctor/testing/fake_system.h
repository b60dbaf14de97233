// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cerrno>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/strings.h"
#include "doctor/system.h"

namespace alcove::doctor::testing {

// A machine made of files copied from real ones, where everything works that a test has not taken
// away. It starts as a Debian 12 with cgroup v2.
class FakeSystem final : public System {
 public:
  std::map<std::string, std::string> files = {
      {"/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n"},
      {"/proc/self/status",
       "Name:\talcove\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n"},
      {"/proc/self/mountinfo",
       "24 30 0:22 / /sys rw,nosuid - sysfs sysfs rw\n"
       "35 24 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 "
       "rw,nsdelegate,memory_recursiveprot\n"},
      {"/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma misc\n"},
      {"/proc/filesystems", "nodev\tsysfs\nnodev\ttmpfs\nnodev\toverlay\n\text4\n\tbtrfs\n"},
      {"/proc/meminfo",
       "MemTotal:       16384000 kB\nMemFree:         1000000 kB\nMemAvailable:   12000000 kB\n"},
      {"/proc/self/limits",
       "Limit                     Soft Limit           Hard Limit           Units     \n"
       "Max processes             63432                63432                processes \n"
       "Max open files            1024                 1048576              files     \n"},
      {"/etc/resolv.conf", "# made by dhcp\nnameserver 192.0.2.53\n"},
      {"/proc/sys/fs/inotify/max_user_instances", "128\n"},
      {"/proc/sys/fs/inotify/max_user_watches", "1048576\n"},
      {"/proc/sys/kernel/pid_max", "4194304\n"},
      {"/proc/sys/kernel/pty/max", "4096\n"},
      {"/proc/sys/kernel/threads-max", "126864\n"},
      {"/proc/sys/net/core/somaxconn", "4096\n"},
      {"/proc/sys/net/ipv4/neigh/default/gc_thresh1", "128\n"},
      {"/proc/sys/net/ipv4/neigh/default/gc_thresh2", "512\n"},
      {"/proc/sys/net/ipv4/neigh/default/gc_thresh3", "1024\n"},
      {"/proc/sys/net/ipv6/neigh/default/gc_thresh1", "128\n"},
      {"/proc/sys/net/ipv6/neigh/default/gc_thresh2", "512\n"},
      {"/proc/sys/net/ipv6/neigh/default/gc_thresh3", "1024\n"},
      {"/proc/sys/user/max_user_namespaces", "63432\n"},
      {"/proc/sys/user/max_pid_namespaces", "63432\n"},
      {"/proc/sys/user/max_mnt_namespaces", "63432\n"},
      {"/proc/sys/user/max_net_namespaces", "63432\n"},
      {"/proc/sys/user/max_uts_namespaces", "63432\n"},
      {"/proc/sys/user/max_ipc_namespaces", "63432\n"},
      {"/proc/sys/user/max_cgroup_namespaces", "63432\n"},
      {"/proc/sys/user/max_time_namespaces", "63432\n"},
      {"/dev/loop-control", ""},
      {"/opt/alcove/alcove-jail", ""},
      {"/opt/alcove/alcove-agent", ""},
      {"/opt/alcove/alcove-interpreter", ""},
      {"/opt/alcove/alcove-relay", ""},
      {"/opt/alcove/alcove-step", ""},
      {"/var/lib", ""},
  };
  std::set<std::string> programs = {"mkfs.btrfs", "mmdebstrap", "nice",
                                    "python3",    "setpriv",    "unshare"};
  std::set<std::string> python_modules = {"pip"};
  bool names_below_localhost = true;
  std::map<Feature, int> broken;  // with the errno of the attempt
  int idmap_error = 0;
  int cgroup_error = 0;
  int write_error = 0;
  std::set<uint16_t> taken_ports;
  Space space{.free_bytes = 100ull << 30, .total_bytes = 200ull << 30};
  bool read_only_settings = false;

  std::optional<std::string> read(const std::string& path) const override {
    const auto found = files.find(path);
    if (found == files.end()) return {};
    return found->second;
  }
  Result<void> write(const std::string& path, const std::string& value) override {
    if (read_only_settings) return result_of(EROFS);
    files[path] = value;
    return {};
  }
  bool exists(const std::string& path) const override { return files.contains(path); }
  std::string find_program(const std::string& name) const override {
    return programs.contains(name) ? "/usr/bin/" + name : std::string();
  }
  bool has_python_module(const std::string& module) const override {
    return programs.contains("python3") && python_modules.contains(module);
  }
  bool finds_host(const std::string& name) const override {
    return names_below_localhost || !name.ends_with(".localhost");
  }
  std::string program_dir() const override { return "/opt/alcove"; }
  Result<void> try_feature(Feature feature) const override {
    const auto found = broken.find(feature);
    return result_of(found == broken.end() ? 0 : found->second);
  }
  Result<void> try_idmap(const std::string&) const override { return result_of(idmap_error); }
  Result<void> try_clone_into_cgroup(const std::string&) const override {
    return result_of(cgroup_error);
  }
  Result<void> try_write_in(const std::string&) const override { return result_of(write_error); }
  Result<void> try_listen(const std::string& address, uint16_t port) const override {
    if (!taken_ports.contains(port)) return {};
    return fail_errno(EADDRINUSE, cat("listen on ", address, " port ", port));
  }
  std::optional<Space> space_of(const std::string&) const override { return space; }

 private:
  static Result<void> result_of(int error) {
    if (error == 0) return {};
    return fail_errno(error, "try");
  }
};

}  // namespace alcove::doctor::testing
