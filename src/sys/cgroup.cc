// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "sys/cgroup.h"

#include <fcntl.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "base/defer.h"
#include "base/strings.h"
#include "sys/file_io.h"
#include "sys/process.h"

namespace alcove::sys {
namespace {

constexpr uint64_t kCpuPeriodMicroseconds = 100'000;

// The number after `key` in a file of "key number" lines.
uint64_t find_stat(std::string_view text, std::string_view key) {
  for (const std::string_view line : split(text, '\n')) {
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ') {
      return parse_number<uint64_t>(line.substr(key.size() + 1)).value_or(0);
    }
  }
  return 0;
}

}  // namespace

std::vector<uint32_t> parse_cpu_list(std::string_view text) {
  std::vector<uint32_t> cpus;
  for (const std::string_view part : split(trim(text), ',')) {
    const size_t dash = part.find('-');
    const auto first = parse_number<uint32_t>(part.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : parse_number<uint32_t>(part.substr(dash + 1));
    if (!first || !last) continue;
    for (uint32_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

CgroupTree::CgroupTree(CgroupLayout layout, std::string prefix, CgroupFs& fs)
    : layout_(std::move(layout)), prefix_(std::move(prefix)), fs_(&fs) {
  std::vector<std::string> used(kShownControllers.begin(), kShownControllers.end());
  // cgroup2 freezes without any controller.
  if (layout_.v2.empty()) used.emplace_back("freezer");
  for (const std::string& controller : used) {
    const auto found = layout_.v1.find(controller);
    if (found == layout_.v1.end()) continue;
    const std::string base = cat(found->second, "/", prefix_);
    if (std::ranges::find(v1_bases_, base) == v1_bases_.end()) v1_bases_.push_back(base);
  }
  if (!layout_.v2.empty()) v2_base_ = cat(layout_.v2, "/", prefix_);
}

Result<CgroupTree> CgroupTree::open(CgroupLayout layout, std::string prefix, CgroupFs& fs) {
  CgroupTree tree(std::move(layout), std::move(prefix), fs);
  ALCOVE_TRY(tree.prepare());
  ALCOVE_TRY(tree.find_cpus());
  return tree;
}

Result<void> CgroupTree::prepare() const {
  for (const std::string& base : bases()) {
    const auto made = fs_->make_dir(base);
    if (!made && made.error().error_number() != EEXIST) return made;
  }
  if (on_v1("cpuset")) ALCOVE_TRY(prepare_v1_cpuset());
  if (!v2_base_.empty()) ALCOVE_TRY(prepare_v2());
  return {};
}

// A new v1 cpuset is empty, and nothing can join it before it has CPUs and memory nodes.
Result<void> CgroupTree::prepare_v1_cpuset() const {
  const std::string& root = layout_.v1.at("cpuset");
  const std::string base = cat(root, "/", prefix_);
  for (const char* file : {"/cpuset.cpus", "/cpuset.mems"}) {
    ALCOVE_TRY_ASSIGN(const std::string value, fs_->read(root + file));
    ALCOVE_TRY(fs_->write(base + file, trim(value)));
  }
  return {};
}

Result<void> CgroupTree::prepare_v2() const {
  for (const char* controller : {"memory", "cpu", "cpuset", "pids"}) {
    if (on_v1(controller) || !layout_.v2_controllers.contains(controller)) continue;
    const std::string enable = cat("+", controller);
    ALCOVE_TRY(fs_->write(layout_.v2 + "/cgroup.subtree_control", enable));
    ALCOVE_TRY(fs_->write(v2_base_ + "/cgroup.subtree_control", enable));
  }
  return {};
}

Result<void> CgroupTree::find_cpus() {
  const std::string file = on_v1("cpuset")
                               ? cat(layout_.v1.at("cpuset"), "/", prefix_, "/cpuset.cpus")
                               : cat(v2_base_, "/cpuset.cpus.effective");
  if (const auto cpus = fs_->read(file)) cpus_ = parse_cpu_list(*cpus);
  if (!cpus_.empty()) return {};
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return fail_errno(errno, "getaffinity");
  for (uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus_.push_back(cpu);
  }
  return {};
}

std::vector<std::string> CgroupTree::bases() const {
  std::vector<std::string> all = v1_bases_;
  if (!v2_base_.empty()) all.push_back(v2_base_);
  return all;
}

std::string CgroupTree::v2_dir(const std::string& name) const { return cat(v2_base_, "/", name); }

std::string CgroupTree::dir(const std::string& controller, const std::string& name) const {
  const auto v1 = layout_.v1.find(controller);
  if (v1 != layout_.v1.end()) return cat(v1->second, "/", prefix_, "/", name);
  if (layout_.v2_controllers.contains(controller)) return v2_dir(name);
  return {};
}

Result<void> CgroupTree::create(const std::string& name, const CgroupLimits& limits) const {
  auto created = try_create(name, limits);
  if (created || created.error().error_number() != ENOENT) return created;
  // Somebody has tidied the empty prefix directories away.
  ALCOVE_TRY(prepare());
  return try_create(name, limits);
}

Result<void> CgroupTree::try_create(const std::string& name, const CgroupLimits& limits) const {
  Rollback rollback;
  auto make = [&](const std::string& base) -> Result<void> {
    const std::string path = cat(base, "/", name);
    ALCOVE_TRY(fs_->make_dir(path));
    rollback.add([this, path] { (void)fs_->remove_dir(path); });
    return {};
  };
  for (const std::string& base : bases()) ALCOVE_TRY(make(base));
  ALCOVE_TRY(write_limits(name, limits));
  rollback.release();
  return {};
}

Result<void> CgroupTree::write_limits(const std::string& name, const CgroupLimits& limits) const {
  const std::string memory = dir("memory", name);
  const std::string bytes = std::to_string(limits.memory_bytes);
  const uint64_t quota = limits.cpus * kCpuPeriodMicroseconds;
  if (on_v1("memory")) {
    ALCOVE_TRY(fs_->write(memory + "/memory.limit_in_bytes", bytes));
    // Absent without swap accounting. Equal to the memory limit means no swap at all.
    const std::string with_swap = memory + "/memory.memsw.limit_in_bytes";
    if (fs_->exists(with_swap)) ALCOVE_TRY(fs_->write(with_swap, bytes));
    // What waits in TCP sockets is not part of the above.
    const std::string tcp = memory + "/memory.kmem.tcp.limit_in_bytes";
    if (fs_->exists(tcp)) ALCOVE_TRY(fs_->write(tcp, std::to_string(limits.memory_bytes / 4)));
  } else {
    ALCOVE_TRY(fs_->write(memory + "/memory.max", bytes));
    const std::string swap = memory + "/memory.swap.max";
    if (fs_->exists(swap)) ALCOVE_TRY(fs_->write(swap, "0"));
  }
  if (on_v1("cpu")) {
    ALCOVE_TRY(fs_->write(dir("cpu", name) + "/cpu.cfs_quota_us", std::to_string(quota)));
  } else {
    ALCOVE_TRY(fs_->write(dir("cpu", name) + "/cpu.max", cat(quota, " ", kCpuPeriodMicroseconds)));
  }
  ALCOVE_TRY(fs_->write(dir("pids", name) + "/pids.max", std::to_string(limits.pids)));
  const std::string cpuset = dir("cpuset", name);
  if (cpuset.empty()) return {};
  if (on_v1("cpuset")) {
    // A v1 cpuset without CPUs or memory nodes lets nobody in (ENOSPC).
    const std::string parent = cat(layout_.v1.at("cpuset"), "/", prefix_);
    ALCOVE_TRY_ASSIGN(const std::string mems, fs_->read(parent + "/cpuset.mems"));
    ALCOVE_TRY(fs_->write(cpuset + "/cpuset.mems", trim(mems)));
    if (limits.cpu_set.empty()) {
      ALCOVE_TRY_ASSIGN(const std::string cpus, fs_->read(parent + "/cpuset.cpus"));
      ALCOVE_TRY(fs_->write(cpuset + "/cpuset.cpus", trim(cpus)));
    }
  }
  if (!limits.cpu_set.empty()) ALCOVE_TRY(fs_->write(cpuset + "/cpuset.cpus", limits.cpu_set));
  return {};
}

Result<CgroupEntry> CgroupTree::enter(const std::string& name) const {
  CgroupEntry entry;
  for (const std::string& base : v1_bases_) {
    ALCOVE_TRY_ASSIGN(UniqueFd fd, open_file(cat(base, "/", name, "/tasks"), O_WRONLY));
    entry.v1_tasks.push_back(std::move(fd));
  }
  if (!v2_base_.empty()) {
    ALCOVE_TRY_ASSIGN(entry.v2_dir, open_file(v2_dir(name), O_RDONLY | O_DIRECTORY));
  }
  return entry;
}

Result<CgroupUsage> CgroupTree::usage(const std::string& name) const {
  CgroupUsage usage;
  auto read_number = [&](const std::string& path) -> Result<uint64_t> {
    ALCOVE_TRY_ASSIGN(const std::string text, fs_->read(path));
    return parse_number<uint64_t>(trim(text)).value_or(0);
  };
  const std::string memory = dir("memory", name);
  const bool memory_v1 = on_v1("memory");
  ALCOVE_TRY_ASSIGN(usage.memory_bytes, read_number(memory + (memory_v1 ? "/memory.usage_in_bytes"
                                                                        : "/memory.current")));
  ALCOVE_TRY_ASSIGN(const std::string stat, fs_->read(memory + "/memory.stat"));
  const std::string total = memory_v1 ? "total_" : "";
  usage.file_cache_bytes =
      find_stat(stat, total + "active_file") + find_stat(stat, total + "inactive_file");
  ALCOVE_TRY_ASSIGN(const uint64_t pids, read_number(dir("pids", name) + "/pids.current"));
  usage.pids = static_cast<uint32_t>(pids);
  if (!v2_base_.empty()) {
    ALCOVE_TRY_ASSIGN(const std::string cpu, fs_->read(v2_dir(name) + "/cpu.stat"));
    usage.cpu_microseconds = find_stat(cpu, "usage_usec");
  } else if (on_v1("cpuacct")) {
    ALCOVE_TRY_ASSIGN(const uint64_t ns, read_number(dir("cpuacct", name) + "/cpuacct.usage"));
    usage.cpu_microseconds = ns / 1000;
  }
  return usage;
}

std::vector<pid_t> CgroupTree::members(const std::string& name) const {
  std::vector<pid_t> pids;
  for (const std::string& base : bases()) {
    const auto text = fs_->read(cat(base, "/", name, "/cgroup.procs"));
    if (!text) continue;
    for (const std::string_view line : split(*text, '\n')) {
      const auto pid = parse_number<pid_t>(line);
      if (pid && *pid > 0 && std::ranges::find(pids, *pid) == pids.end()) pids.push_back(*pid);
    }
  }
  return pids;
}

Result<bool> CgroupTree::contains(const std::string& name, pid_t pid) const {
  Result<void> unread;
  for (const std::string& base : bases()) {
    const auto text = fs_->read(cat(base, "/", name, "/cgroup.procs"));
    if (!text) {
      if (text.error().code() != Code::kNotFound) unread = fail(text.error());
      continue;
    }
    for (const std::string_view line : split(*text, '\n')) {
      if (parse_number<pid_t>(line) == pid) return true;
    }
  }
  ALCOVE_TRY(std::move(unread));
  return false;
}

std::set<std::string> CgroupTree::list() const {
  std::set<std::string> names;
  for (const std::string& base : bases()) {
    for (std::string& name : fs_->list_dirs(base)) names.insert(std::move(name));
  }
  return names;
}

Result<void> CgroupTree::kill(const std::string& name,
                              std::chrono::steady_clock::time_point deadline) const {
  // Ends them all at one stroke where the kernel can (5.14); the loop is for the rest.
  const std::string at_once = v2_dir(name) + "/cgroup.kill";
  if (!v2_base_.empty() && fs_->exists(at_once)) (void)fs_->write(at_once, "1");
  for (;;) {
    const std::vector<pid_t> pids = members(name);
    if (pids.empty()) return {};
    for (const pid_t pid : pids) {
      const auto pidfd = open_pidfd(pid);
      // The number may have gone to another process since it was read: look again with the
      // process held.
      const auto inside = contains(name, pid);
      if (pidfd && inside && *inside) kill_by_pidfd(pidfd->get());
    }
    if (std::chrono::steady_clock::now() > deadline) {
      return fail(Code::kDeadlineExceeded, cat("processes of ", name, " do not end"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Result<void> CgroupTree::remove(const std::string& name,
                                std::chrono::steady_clock::time_point deadline) const {
  for (const std::string& base : bases()) {
    auto pause = std::chrono::microseconds(100);
    for (;;) {
      const auto removed = fs_->remove_dir(cat(base, "/", name));
      if (removed || removed.error().error_number() == ENOENT) break;
      if (removed.error().error_number() != EBUSY || std::chrono::steady_clock::now() > deadline) {
        return removed;
      }
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::microseconds(10'000));
    }
  }
  return {};
}

void CgroupTree::remove_prefix() const {
  for (const std::string& base : bases()) (void)fs_->remove_dir(base);
}

}  // namespace alcove::sys
