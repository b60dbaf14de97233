// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "sys/cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "base/ids.h"
#include "base/strings.h"
#include "sys/file_io.h"
#include "sys/process.h"

namespace alcove::sys {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::ElementsAre;
using testing::HasSubstr;

// Behaves as the kernel does: a directory has the files of its hierarchy's
// controllers (v2: of those that the parent hands down), writes to absent files fail.
class FakeCgroupFs final : public CgroupFs {
 public:
  void mount_v1(const std::string& path, std::vector<std::string> controllers) {
    v1_[path] = std::move(controllers);
    add_v1_files(path, v1_[path]);
    if (files_.contains(path + "/cpuset.cpus")) {
      files_[path + "/cpuset.cpus"] = "0-3\n";
      files_[path + "/cpuset.mems"] = "0\n";
    }
  }
  void mount_v2(const std::string& path, const std::string& controllers) {
    v2_ = path;
    dirs_.insert(path);
    files_[path + "/cgroup.controllers"] = controllers;
    files_[path + "/cgroup.subtree_control"] = "";
  }

  Result<void> make_dir(const std::string& path) override {
    const std::string parent = path.substr(0, path.rfind('/'));
    if (!dirs_.contains(parent)) return fail_errno(ENOENT, path);
    if (!dirs_.insert(path).second) return fail_errno(EEXIST, path);
    for (const auto& [root, controllers] : v1_) {
      if (path.starts_with(root + "/")) add_v1_files(path, controllers);
    }
    if (!v2_.empty() && path.starts_with(v2_ + "/")) add_v2_files(path, parent);
    return {};
  }
  Result<void> remove_dir(const std::string& path) override {
    if (busy_rmdirs > 0) {
      --busy_rmdirs;
      return fail_errno(EBUSY, path);
    }
    if (dirs_.erase(path) == 0) return fail_errno(ENOENT, path);
    std::erase_if(files_, [&](const auto& file) { return file.first.starts_with(path + "/"); });
    return {};
  }
  Result<std::string> read(const std::string& path) override {
    const auto found = files_.find(path);
    if (found == files_.end()) return fail_errno(ENOENT, path);
    return read_once.contains(path) ? std::exchange(found->second, "") : found->second;
  }
  Result<void> write(const std::string& path, std::string_view value) override {
    const auto found = files_.find(path);
    if (found == files_.end()) return fail_errno(ENOENT, path);
    if (path == refused_file) return fail_errno(EINVAL, path);
    if (path.ends_with("subtree_control")) {
      const std::string dir = path.substr(0, path.rfind('/'));
      const std::string name(value.substr(1));
      if (files_[dir + "/cgroup.controllers"].find(name) == std::string::npos) {
        return fail_errno(ENOENT, path);
      }
      found->second += name + " ";
      for (const std::string& child : list_dirs(dir)) add_v2_files(dir + "/" + child, dir);
      return {};
    }
    found->second = value;
    return {};
  }
  bool exists(const std::string& path) override {
    return files_.contains(path) || dirs_.contains(path);
  }
  std::vector<std::string> list_dirs(const std::string& path) override {
    std::vector<std::string> names;
    for (const std::string& dir : dirs_) {
      if (dir.substr(0, dir.rfind('/')) == path) names.push_back(dir.substr(path.size() + 1));
    }
    return names;
  }

  int busy_rmdirs = 0;
  std::string refused_file;
  // Empty after they were read.
  std::set<std::string> read_once;
  std::map<std::string, std::string> files_;
  std::set<std::string> dirs_;

 private:
  void add_v1_files(const std::string& path, const std::vector<std::string>& controllers) {
    dirs_.insert(path);
    auto add = [&](const char* name) { files_[path + "/" + name] = ""; };
    add("tasks");
    add("cgroup.procs");
    for (const std::string& controller : controllers) {
      if (controller == "memory") {
        add("memory.limit_in_bytes");
        add("memory.memsw.limit_in_bytes");
        add("memory.kmem.tcp.limit_in_bytes");
        add("memory.usage_in_bytes");
        add("memory.stat");
      }
      if (controller == "cpu") add("cpu.cfs_quota_us");
      if (controller == "cpuset") add("cpuset.cpus"), add("cpuset.mems");
      if (controller == "pids") add("pids.max"), add("pids.current");
      if (controller == "cpuacct") add("cpuacct.usage");
      if (controller == "freezer") add("freezer.state");
    }
  }
  void add_v2_files(const std::string& path, const std::string& parent) {
    const std::string handed_down = files_[parent + "/cgroup.subtree_control"];
    auto add = [&](const char* name) { files_.try_emplace(path + "/" + name); };
    files_[path + "/cgroup.controllers"] = handed_down;
    add("cgroup.subtree_control");
    add("cgroup.procs");
    add("cgroup.kill");
    add("cpu.stat");
    for (const std::string_view controller : split(handed_down, ' ')) {
      if (controller == "memory") {
        add("memory.max"), add("memory.swap.max"), add("memory.current"), add("memory.stat");
      }
      if (controller == "cpu") add("cpu.max");
      if (controller == "cpuset") add("cpuset.cpus"), add("cpuset.cpus.effective");
      if (controller == "pids") add("pids.max"), add("pids.current");
    }
  }

  std::map<std::string, std::vector<std::string>> v1_;
  std::string v2_;
};

const CgroupLimits kLimits = {.memory_bytes = 1 << 30, .cpus = 2, .cpu_set = {}, .pids = 99};

CgroupLimits limits_on(const char* cpus) {
  CgroupLimits limits = kLimits;
  limits.cpu_set = cpus;
  return limits;
}

constexpr const char* kHybridMountinfo =
    "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
    "30 25 0:26 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
    "31 25 0:27 / /cg/cpuset rw shared:5 - cgroup cgroup rw,cpuset\n"
    "32 25 0:28 / /cg/mem\\040ory rw - cgroup cgroup rw,memory\n"
    "33 25 0:29 / /cg/pids rw - cgroup cgroup rw,pids\n"
    "34 25 0:30 / /cg/systemd rw - cgroup cgroup rw,name=systemd\n"
    "35 25 0:31 / /cg/unified rw - cgroup2 cgroup2 rw,nsdelegate\n";

FakeCgroupFs make_hybrid() {
  FakeCgroupFs fs;
  fs.mount_v1("/cg/cpu", {"cpu", "cpuacct"});
  fs.mount_v1("/cg/cpuset", {"cpuset"});
  fs.mount_v1("/cg/mem ory", {"memory"});
  fs.mount_v1("/cg/pids", {"pids"});
  fs.mount_v2("/cg/unified", "hugetlb\n");
  return fs;
}

TEST(CgroupLayout, ReadsAHybridMountinfo) {
  FakeCgroupFs fs = make_hybrid();
  const auto layout = find_cgroup_layout(kHybridMountinfo, fs);
  ASSERT_TRUE(layout) << layout.error().message();
  EXPECT_EQ(layout->v1.at("memory"), "/cg/mem ory");
  EXPECT_EQ(layout->v1.at("cpu"), "/cg/cpu");
  EXPECT_EQ(layout->v1.at("cpuacct"), "/cg/cpu");
  EXPECT_EQ(layout->v2, "/cg/unified");
  EXPECT_THAT(layout->v2_controllers, ElementsAre("hugetlb"));
}

TEST(CgroupLayout, NamesTheControllerThatIsMissing) {
  FakeCgroupFs fs;
  fs.mount_v2("/sys/fs/cgroup", "cpu memory\n");
  const auto layout =
      find_cgroup_layout("35 25 0:31 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", fs);
  ASSERT_FALSE(layout);
  EXPECT_EQ(layout.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(layout.error().message(), HasSubstr("pids"));
}

TEST(CgroupTree, WritesHybridLimitsToTheV1Hierarchies) {
  FakeCgroupFs fs = make_hybrid();
  const auto layout = find_cgroup_layout(kHybridMountinfo, fs);
  ASSERT_TRUE(layout);
  const auto tree = CgroupTree::open(*layout, "alcove", fs);
  ASSERT_TRUE(tree) << tree.error().message();
  EXPECT_THAT(tree->cpus(), ElementsAre(0, 1, 2, 3));
  const auto made = tree->create("one", limits_on("1,3"));
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(fs.files_.at("/cg/mem ory/alcove/one/memory.limit_in_bytes"), "1073741824");
  EXPECT_EQ(fs.files_.at("/cg/mem ory/alcove/one/memory.memsw.limit_in_bytes"), "1073741824");
  EXPECT_EQ(fs.files_.at("/cg/mem ory/alcove/one/memory.kmem.tcp.limit_in_bytes"), "268435456");
  EXPECT_EQ(fs.files_.at("/cg/cpu/alcove/one/cpu.cfs_quota_us"), "200000");
  EXPECT_EQ(fs.files_.at("/cg/cpuset/alcove/one/cpuset.cpus"), "1,3");
  EXPECT_EQ(fs.files_.at("/cg/cpuset/alcove/one/cpuset.mems"), "0");
  EXPECT_EQ(fs.files_.at("/cg/pids/alcove/one/pids.max"), "99");
  EXPECT_TRUE(fs.dirs_.contains("/cg/unified/alcove/one"));
  EXPECT_THAT(tree->list(), ElementsAre("one"));
}

TEST(CgroupTree, HandsV2ControllersDownAndWritesV2Limits) {
  FakeCgroupFs fs;
  fs.mount_v2("/sys/fs/cgroup", "cpuset cpu io memory pids\n");
  const auto layout =
      find_cgroup_layout("35 25 0:31 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", fs);
  ASSERT_TRUE(layout) << layout.error().message();
  const auto tree = CgroupTree::open(*layout, "alcove", fs);
  ASSERT_TRUE(tree) << tree.error().message();
  ASSERT_TRUE(tree->create("one", limits_on("0-1")));
  const std::string dir = "/sys/fs/cgroup/alcove/one";
  EXPECT_EQ(fs.files_.at(dir + "/memory.max"), "1073741824");
  EXPECT_EQ(fs.files_.at(dir + "/memory.swap.max"), "0");
  EXPECT_EQ(fs.files_.at(dir + "/cpu.max"), "200000 100000");
  EXPECT_EQ(fs.files_.at(dir + "/cpuset.cpus"), "0-1");
  EXPECT_EQ(fs.files_.at(dir + "/pids.max"), "99");
}

TEST(CgroupTree, ReadsUsageOfBothVersions) {
  FakeCgroupFs v2;
  v2.mount_v2("/c", "cpuset cpu memory pids\n");
  const auto layout2 = find_cgroup_layout("35 25 0:31 / /c rw - cgroup2 cgroup2 rw\n", v2);
  const auto tree2 = CgroupTree::open(*layout2, "p", v2);
  ASSERT_TRUE(tree2);
  ASSERT_TRUE(tree2->create("n", kLimits));
  v2.files_["/c/p/n/memory.current"] = "5000\n";
  v2.files_["/c/p/n/memory.stat"] = "anon 1\ninactive_file 30\nactive_file 4\n";
  v2.files_["/c/p/n/cpu.stat"] = "usage_usec 77\nuser_usec 1\n";
  v2.files_["/c/p/n/pids.current"] = "3\n";
  const auto usage2 = tree2->usage("n");
  ASSERT_TRUE(usage2);
  EXPECT_EQ(usage2->memory_bytes, 5000u);
  EXPECT_EQ(usage2->file_cache_bytes, 34u);
  EXPECT_EQ(usage2->cpu_microseconds, 77u);
  EXPECT_EQ(usage2->pids, 3u);

  FakeCgroupFs v1;
  v1.mount_v1("/m", {"memory"});
  v1.mount_v1("/c", {"cpu", "cpuacct"});
  v1.mount_v1("/p", {"pids"});
  v1.mount_v1("/f", {"freezer"});
  const auto layout1 = find_cgroup_layout(
      "1 2 0:1 / /m rw - cgroup cgroup rw,memory\n2 2 0:2 / /c rw - cgroup cgroup rw,cpu,cpuacct\n"
      "3 2 0:3 / /p rw - cgroup cgroup rw,pids\n4 2 0:4 / /f rw - cgroup cgroup rw,freezer\n",
      v1);
  ASSERT_TRUE(layout1) << layout1.error().message();
  const auto tree1 = CgroupTree::open(*layout1, "x", v1);
  ASSERT_TRUE(tree1) << tree1.error().message();
  ASSERT_TRUE(tree1->create("n", kLimits));
  EXPECT_TRUE(v1.dirs_.contains("/f/x/n"));
  v1.files_["/m/x/n/memory.usage_in_bytes"] = "9000\n";
  v1.files_["/m/x/n/memory.stat"] = "active_file 1\ntotal_inactive_file 5\ntotal_active_file 6\n";
  v1.files_["/c/x/n/cpuacct.usage"] = "123000\n";
  v1.files_["/p/x/n/pids.current"] = "2\n";
  const auto usage1 = tree1->usage("n");
  ASSERT_TRUE(usage1);
  EXPECT_EQ(usage1->memory_bytes, 9000u);
  EXPECT_EQ(usage1->file_cache_bytes, 11u);
  EXPECT_EQ(usage1->cpu_microseconds, 123u);
}

TEST(CgroupTree, LeavesNothingWhenALimitIsRefused) {
  FakeCgroupFs fs = make_hybrid();
  const auto layout = find_cgroup_layout(kHybridMountinfo, fs);
  const auto tree = CgroupTree::open(*layout, "alcove", fs);
  ASSERT_TRUE(tree);
  fs.refused_file = "/cg/pids/alcove/one/pids.max";
  EXPECT_FALSE(tree->create("one", kLimits));
  EXPECT_TRUE(tree->list().empty());
}

TEST(CgroupTree, MakesThePrefixAgainWhenItWasRemoved) {
  FakeCgroupFs fs = make_hybrid();
  const auto layout = find_cgroup_layout(kHybridMountinfo, fs);
  const auto tree = CgroupTree::open(*layout, "alcove", fs);
  ASSERT_TRUE(tree);
  tree->remove_prefix();
  ASSERT_FALSE(fs.dirs_.contains("/cg/pids/alcove"));
  const auto made = tree->create("one", limits_on("0"));
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(fs.files_.at("/cg/cpuset/alcove/cpuset.cpus"), "0-3");
}

TEST(CgroupTree, RemoveWaitsForADyingProcessAndAcceptsAbsence) {
  FakeCgroupFs fs = make_hybrid();
  const auto layout = find_cgroup_layout(kHybridMountinfo, fs);
  const auto tree = CgroupTree::open(*layout, "alcove", fs);
  ASSERT_TRUE(tree->create("one", kLimits));
  fs.busy_rmdirs = 3;
  EXPECT_TRUE(tree->remove("one", steady_clock::now() + seconds(5)));
  EXPECT_TRUE(tree->list().empty());
  EXPECT_TRUE(tree->remove("one", steady_clock::now()));
  ASSERT_TRUE(tree->create("two", kLimits));
  fs.busy_rmdirs = 1'000'000;
  const auto stuck = tree->remove("two", steady_clock::now());
  ASSERT_FALSE(stuck);
  EXPECT_EQ(stuck.error().error_number(), EBUSY);
}

TEST(CgroupTree, KillSparesAProcessThatIsNotInsideAnyMore) {
  FakeCgroupFs fs;
  fs.mount_v2("/c", "cpuset cpu memory pids\n");
  const auto layout = find_cgroup_layout("35 25 0:31 / /c rw - cgroup2 cgroup2 rw\n", fs);
  const auto tree = CgroupTree::open(*layout, "p", fs);
  ASSERT_TRUE(tree);
  ASSERT_TRUE(tree->create("n", kLimits));
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  ASSERT_GT(child, 0);
  // As if the number had gone to another process between the two looks.
  fs.files_["/c/p/n/cgroup.procs"] = cat(child, "\n");
  fs.read_once.insert("/c/p/n/cgroup.procs");
  EXPECT_TRUE(tree->kill("n", steady_clock::now() + seconds(10)));
  const auto pidfd = open_pidfd(child);
  ASSERT_TRUE(pidfd);
  EXPECT_FALSE(wait_by_pidfd(pidfd->get(), steady_clock::now() + std::chrono::milliseconds(200)));
  kill_by_pidfd(pidfd->get());
  ::waitpid(child, nullptr, 0);
}

TEST(CgroupTree, ParsesCpuLists) {
  EXPECT_THAT(parse_cpu_list("0-2,5\n"), ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(parse_cpu_list("7"), ElementsAre(7));
  EXPECT_TRUE(parse_cpu_list("\n").empty());
}

// On the real kernel; needs root.
TEST(CgroupTreeRoot, HoldsCountsAndKillsARealProcess) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const auto mountinfo = read_file("/proc/self/mountinfo");
  ASSERT_TRUE(mountinfo);
  const auto layout = find_cgroup_layout(*mountinfo, kernel_cgroup_fs());
  ASSERT_TRUE(layout) << layout.error().message();
  const auto tree =
      CgroupTree::open(*layout, "alcove-systest-" + random_alphanumeric(6), kernel_cgroup_fs());
  ASSERT_TRUE(tree) << tree.error().message();
  ASSERT_TRUE(tree->create("box", kLimits));
  auto entry = tree->enter("box");
  ASSERT_TRUE(entry) << entry.error().message();
  const pid_t child = clone_process({.cgroup_fd = entry->v2_dir.get()});
  if (child == 0) {
    for (const UniqueFd& tasks : entry->v1_tasks) {
      if (::write(tasks.get(), "0", 1) != 1) ::_exit(1);
    }
    for (;;) ::pause();
  }
  ASSERT_GT(child, 0);
  const auto deadline = steady_clock::now() + seconds(10);
  auto usage = tree->usage("box");
  while (usage && usage->pids != 1 && steady_clock::now() < deadline) usage = tree->usage("box");
  ASSERT_TRUE(usage) << usage.error().message();
  EXPECT_EQ(usage->pids, 1u);
  EXPECT_TRUE(*tree->contains("box", child));
  EXPECT_FALSE(*tree->contains("box", ::getpid()));
  std::thread reaper([&] { ::waitpid(child, nullptr, 0); });
  EXPECT_TRUE(tree->kill("box", deadline));
  reaper.join();
  EXPECT_TRUE(tree->remove("box", deadline));
  EXPECT_TRUE(tree->list().empty());
  tree->remove_prefix();
}

}  // namespace
}  // namespace alcove::sys
