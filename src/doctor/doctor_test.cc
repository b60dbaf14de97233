// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "doctor/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "doctor/checks.h"
#include "doctor/testing/fake_system.h"

namespace alcove::doctor {
namespace {

using testing::FakeSystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Plan kPlan{.data_dir = "/var/lib/alcove",
                 .newest_format = 1,
                 .listen = {{.address = "127.0.0.1", .port = 3000}}};

std::vector<std::string> names_not_ok(const std::vector<Finding>& findings) {
  std::vector<std::string> names;
  for (const Finding& finding : findings) {
    if (finding.verdict != Verdict::kOk) names.push_back(finding.name);
  }
  return names;
}

const Finding& find(const std::vector<Finding>& findings, std::string_view name) {
  static const Finding kNone;
  const auto found =
      std::ranges::find_if(findings, [&](const Finding& each) { return each.name == name; });
  EXPECT_NE(found, findings.end()) << name;
  return found == findings.end() ? kNone : *found;
}

void expect_explained(const Finding& finding, Verdict verdict) {
  EXPECT_EQ(finding.verdict, verdict) << finding.name << ": " << finding.detail;
  EXPECT_FALSE(finding.detail.empty()) << finding.name;
  EXPECT_FALSE(finding.lost.empty()) << finding.name;
  EXPECT_FALSE(finding.remedy.empty()) << finding.name;
}

// What Debian 12 has too low.
const std::vector<std::string> kDebianLacks = {
    "fs.inotify.max_user_instances",     "kernel.pty.max",
    "net.ipv4.neigh.default.gc_thresh1", "net.ipv4.neigh.default.gc_thresh2",
    "net.ipv4.neigh.default.gc_thresh3", "net.ipv6.neigh.default.gc_thresh1",
    "net.ipv6.neigh.default.gc_thresh2", "net.ipv6.neigh.default.gc_thresh3",
};

TEST(Doctor, AFreshDebian12LacksOnlySettings) {
  const auto findings = examine(FakeSystem(), kPlan);
  EXPECT_EQ(names_not_ok(findings), kDebianLacks);
  EXPECT_TRUE(is_usable(findings));
}

TEST(Doctor, FixesAreAppliedAndTold) {
  FakeSystem system;
  const auto findings = examine_and_fix(system, kPlan);
  EXPECT_THAT(names_not_ok(findings), IsEmpty());
  const Finding& raised = find(findings, "fs.inotify.max_user_instances");
  EXPECT_TRUE(raised.fixed);
  EXPECT_THAT(raised.detail, HasSubstr("raised from 128 to 65536"));
  EXPECT_EQ(system.files["/proc/sys/fs/inotify/max_user_instances"], "65536");
  EXPECT_EQ(system.files["/proc/sys/kernel/pid_max"], "4194304\n");
  EXPECT_EQ(system.files["/proc/sys/kernel/pty/max"], "65536");
  EXPECT_EQ(system.files["/proc/sys/net/ipv4/neigh/default/gc_thresh3"], "65536");
  EXPECT_EQ(system.files["/proc/sys/net/ipv6/neigh/default/gc_thresh3"], "65536");
}

TEST(Doctor, AFixThatFailsStaysAWarning) {
  FakeSystem system;
  system.read_only_settings = true;
  const auto findings = examine_and_fix(system, kPlan);
  const Finding& finding = find(findings, "fs.inotify.max_user_instances");
  expect_explained(finding, Verdict::kWarning);
  EXPECT_FALSE(finding.fixed);
  EXPECT_THAT(finding.remedy, HasSubstr("Read-only file system"));
  EXPECT_TRUE(is_usable(findings));
}

TEST(Doctor, EachFeatureThatIsNotThereIsExplained) {
  struct Case {
    Feature feature;
    const char* name;
    Verdict verdict;
  };
  for (const Case& each : {Case{Feature::kUserNamespace, "namespaces", Verdict::kMissing},
                           Case{Feature::kTimeNamespace, "namespaces", Verdict::kMissing},
                           Case{Feature::kOverlay, "overlayfs", Verdict::kMissing},
                           Case{Feature::kSeccomp, "seccomp", Verdict::kMissing},
                           Case{Feature::kPidfd, "pidfd", Verdict::kMissing},
                           Case{Feature::kNftables, "nftables", Verdict::kMissing},
                           Case{Feature::kReject, "nftables", Verdict::kMissing},
                           Case{Feature::kTproxy, "nftables", Verdict::kMissing},
                           Case{Feature::kQueue, "NFQUEUE", Verdict::kWarning}}) {
    FakeSystem system;
    system.broken[each.feature] = EPERM;
    const auto findings = examine(system, kPlan);
    expect_explained(find(findings, each.name), each.verdict);
    EXPECT_THAT(find(findings, each.name).detail, HasSubstr("not permitted"));
    EXPECT_EQ(is_usable(findings), each.verdict != Verdict::kMissing) << each.name;
  }
}

TEST(Doctor, OldKernelsAreMissing) {
  FakeSystem system;
  for (const char* release : {"5.15.0-91-generic", "6.0.19", "4.19", "", "nonsense"}) {
    system.files["/proc/sys/kernel/osrelease"] = release;
    expect_explained(check_kernel(system), Verdict::kMissing);
  }
  for (const char* release : {"6.1.0-18-amd64\n", "6.18.44", "7.0", "10.2-rc1"}) {
    system.files["/proc/sys/kernel/osrelease"] = release;
    EXPECT_EQ(check_kernel(system).verdict, Verdict::kOk) << release;
  }
}

TEST(Doctor, RootNeedsItsCapabilities) {
  FakeSystem system;
  system.files["/proc/self/status"] = "Uid:\t0\t1000\t0\t0\nCapEff:\t0000000000000000\n";
  EXPECT_THAT(check_privileges(system).detail, HasSubstr("not root"));
  expect_explained(check_privileges(system), Verdict::kMissing);
  // Docker's default set.
  system.files["/proc/self/status"] = "Uid:\t0\t0\t0\t0\nCapEff:\t00000000a80425fb\n";
  expect_explained(check_privileges(system), Verdict::kMissing);
  EXPECT_THAT(check_privileges(system).detail, HasSubstr("SYS_ADMIN"));
  EXPECT_THAT(check_privileges(system).detail, ::testing::Not(HasSubstr("SETUID")));
  // One that only the relay needs.
  for (const auto& [mask, name] : {std::pair("000001ffffffdfff", "NET_RAW"),
                                   {"000001fffffffbff", "NET_BIND_SERVICE"},
                                   {"000001fffffffeff", "SETPCAP"}}) {
    system.files["/proc/self/status"] = cat("Uid:\t0\t0\t0\t0\nCapEff:\t", mask, "\n");
    expect_explained(check_privileges(system), Verdict::kMissing);
    EXPECT_EQ(check_privileges(system).detail, cat("root without ", name));
  }
}

TEST(Doctor, CgroupsV1V2AndHybridAreToldApart) {
  FakeSystem system;
  EXPECT_THAT(check_cgroups(system).detail, HasSubstr("v2 ("));
  constexpr const char* kV1 =
      "30 24 0:25 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "31 24 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
      "32 24 0:27 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
      "33 24 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";
  system.files["/proc/self/mountinfo"] = kV1;
  EXPECT_EQ(check_cgroups(system).detail, "v1 (cpu, cpuset, memory, pids)");
  system.files["/proc/self/mountinfo"] =
      std::string(kV1) + "34 24 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
  system.files["/sys/fs/cgroup/unified/cgroup.controllers"] = "\n";
  EXPECT_THAT(check_cgroups(system).detail, HasSubstr("hybrid"));
  EXPECT_EQ(check_cgroups(system).verdict, Verdict::kOk);
}

TEST(Doctor, ControllersThatAreOff) {
  FakeSystem system;
  system.files["/sys/fs/cgroup/cgroup.controllers"] = "cpuset cpu io pids\n";
  expect_explained(check_cgroups(system), Verdict::kMissing);
  EXPECT_THAT(check_cgroups(system).detail, HasSubstr("memory"));
  system.files["/sys/fs/cgroup/cgroup.controllers"] = "cpu memory pids\n";
  expect_explained(check_cgroups(system), Verdict::kWarning);
  system.files["/proc/self/mountinfo"] = "";
  expect_explained(check_cgroups(system), Verdict::kMissing);
}

TEST(Doctor, BirthInACgroupIsNeededOnlyWithV2) {
  FakeSystem system;
  system.cgroup_error = ENOSYS;
  expect_explained(check_birth_in_cgroup(system), Verdict::kMissing);
  system.files["/proc/self/mountinfo"] =
      "30 24 0:25 / /sys/fs/cgroup/all rw - cgroup cgroup rw,memory,cpu,pids\n";
  EXPECT_EQ(check_birth_in_cgroup(system).verdict, Verdict::kOk);
}

TEST(Doctor, AFileSystemWithoutIdmapsIsNamed) {
  FakeSystem system;
  system.idmap_error = EINVAL;
  const Finding finding = check_idmapped_mounts(system, kPlan);
  expect_explained(finding, Verdict::kMissing);
  // The data directory itself does not exist yet.
  EXPECT_THAT(finding.detail, HasSubstr("/var/lib:"));
}

TEST(Doctor, DiskLimitsNeedBtrfsLoopAndItsProgram) {
  FakeSystem system;
  system.programs.erase("mkfs.btrfs");
  expect_explained(check_disk_limits(system), Verdict::kWarning);
  EXPECT_THAT(check_disk_limits(system).remedy, HasSubstr("btrfs-progs"));
  system.files.erase("/dev/loop-control");
  EXPECT_THAT(check_disk_limits(system).remedy, HasSubstr("modprobe loop"));
  system.files["/proc/filesystems"] = "\text4\n";
  EXPECT_THAT(check_disk_limits(system).remedy, HasSubstr("CONFIG_BTRFS_FS"));
  // A module that is not loaded yet is as good.
  system.files["/lib/modules/6.1.0-18-amd64/modules.dep"] =
      "kernel/fs/btrfs/btrfs.ko: kernel/lib/xor.ko\n";
  EXPECT_THAT(check_disk_limits(system).remedy, ::testing::Not(HasSubstr("CONFIG")));
}

TEST(Doctor, ToolsOfTemplateBuildsAreNamedWithTheirPackages) {
  struct Case {
    const char* program;
    const char* package;
    bool for_debian;
    bool for_python;
  };
  constexpr Case kCases[] = {{"mmdebstrap", "mmdebstrap", true, false},
                             {"unshare", "util-linux", true, false},
                             {"setpriv", "util-linux", true, true},
                             {"nice", "coreutils", false, true}};
  for (const Case& tool : kCases) {
    FakeSystem system;
    system.programs.erase(tool.program);
    const auto expect = [&](const Finding& finding, bool lacking) {
      if (!lacking) {
        EXPECT_EQ(finding.verdict, Verdict::kOk) << tool.program << ": " << finding.detail;
        return;
      }
      expect_explained(finding, Verdict::kWarning);
      EXPECT_EQ(finding.detail, cat("not installed: ", tool.program));
      EXPECT_EQ(finding.remedy, cat("apt-get install ", tool.package));
    };
    expect(check_debian_tools(system), tool.for_debian);
    expect(check_python_tools(system), tool.for_python);
  }
}

TEST(Doctor, PipIsAModuleOfPython) {
  FakeSystem system;
  system.python_modules.clear();
  expect_explained(check_python_tools(system), Verdict::kWarning);
  EXPECT_EQ(check_python_tools(system).detail, "not installed: pip");
  EXPECT_EQ(check_python_tools(system).remedy, "apt-get install python3-pip");
  system.programs.erase("python3");
  EXPECT_EQ(check_python_tools(system).detail, "not installed: python3, pip");
  EXPECT_EQ(check_python_tools(system).remedy, "apt-get install python3 python3-pip");
}

TEST(Doctor, Helpers) {
  for (const char* program :
       {"alcove-agent", "alcove-interpreter", "alcove-jail", "alcove-relay", "alcove-step"}) {
    FakeSystem incomplete;
    incomplete.files.erase(cat("/opt/alcove/", program));
    expect_explained(check_helpers(incomplete), Verdict::kMissing);
    EXPECT_EQ(check_helpers(incomplete).detail, cat("not in /opt/alcove: ", program));
  }
}

TEST(Doctor, DataDirectoriesOfOtherVersions) {
  FakeSystem system;
  EXPECT_THAT(check_data_dir(system, kPlan).detail, HasSubstr("new"));
  system.files["/var/lib/alcove/version"] = "1\n";
  EXPECT_EQ(check_data_dir(system, kPlan).verdict, Verdict::kOk);
  system.files["/var/lib/alcove/version"] = "2\n";
  expect_explained(check_data_dir(system, kPlan), Verdict::kMissing);
  system.files["/var/lib/alcove/version"] = "x";
  expect_explained(check_data_dir(system, kPlan), Verdict::kMissing);
  system.files.erase("/var/lib/alcove/version");
  system.write_error = EROFS;
  expect_explained(check_data_dir(system, kPlan), Verdict::kMissing);
}

TEST(Doctor, SpaceOnDiskAndInMemory) {
  FakeSystem system;
  system.space.free_bytes = 5ull << 30;
  expect_explained(check_disk_space(system, kPlan), Verdict::kWarning);
  system.space.free_bytes = 1ull << 30;
  expect_explained(check_disk_space(system, kPlan), Verdict::kMissing);
  // The pool takes its space when it is made.
  system.files["/var/lib/alcove/pool.img"] = "";
  EXPECT_EQ(check_disk_space(system, kPlan).verdict, Verdict::kOk);
  system.files["/proc/meminfo"] = "MemTotal: 1000000 kB\nMemAvailable: 300000 kB\n";
  expect_explained(check_memory(system), Verdict::kWarning);
}

TEST(Doctor, FewDescriptorsAreAWarning) {
  FakeSystem system;
  system.files["/proc/self/limits"] = "Max open files            1024        4096        files\n";
  expect_explained(check_descriptors(system), Verdict::kWarning);
  system.files["/proc/self/limits"] = "Max open files            1024     unlimited     files\n";
  EXPECT_EQ(check_descriptors(system).verdict, Verdict::kOk);
}

TEST(Doctor, APortIsFreeOrOursOrTaken) {
  FakeSystem system;
  EXPECT_THAT(check_ports(system, kPlan).detail, HasSubstr("free"));
  system.taken_ports = {3000};
  expect_explained(check_ports(system, kPlan), Verdict::kMissing);
  system.files["/var/lib/alcove/server.pid"] = "77\n";
  system.files["/proc/77/comm"] = "nginx\n";
  expect_explained(check_ports(system, kPlan), Verdict::kMissing);
  system.files["/proc/77/comm"] = "alcove\n";
  system.files["/var/lib/alcove/env"] = "E2B_API_URL=http://127.0.0.1:30001\n";
  expect_explained(check_ports(system, kPlan), Verdict::kMissing);
  system.files["/var/lib/alcove/env"] = "E2B_API_URL=http://127.0.0.1:3000\n";
  EXPECT_EQ(check_ports(system, kPlan).verdict, Verdict::kOk);
}

TEST(Doctor, NamesBelowLocalhostNeedAnAnswer) {
  FakeSystem system;
  EXPECT_EQ(check_local_names(system).verdict, Verdict::kOk);
  system.names_below_localhost = false;
  expect_explained(check_local_names(system), Verdict::kWarning);
  EXPECT_THAT(check_local_names(system).remedy, HasSubstr("libnss-myhostname"));
}

TEST(Doctor, ResolversAreRead) {
  FakeSystem system;
  EXPECT_EQ(check_resolvers(system).detail, "192.0.2.53");
  system.files["/etc/resolv.conf"] = "# nameserver 192.0.2.53\nsearch x\n";
  expect_explained(check_resolvers(system), Verdict::kWarning);
  system.files.erase("/etc/resolv.conf");
  expect_explained(check_resolvers(system), Verdict::kWarning);
}

TEST(Doctor, SettingsAreOnlyRaised) {
  FakeSystem system;
  system.files["/proc/sys/user/max_net_namespaces"] = "0\n";
  system.files["/proc/sys/kernel/pid_max"] = "32768\n";
  for (const Finding& finding : check_sysctls(system)) {
    if (finding.verdict == Verdict::kOk) {
      EXPECT_FALSE(finding.fix) << finding.name;
      continue;
    }
    expect_explained(finding, Verdict::kWarning);
    ASSERT_TRUE(finding.fix) << finding.name;
    EXPECT_GT(std::stoull(finding.fix->value), std::stoull(finding.detail)) << finding.name;
  }
  std::vector<std::string> lacks = kDebianLacks;
  lacks.insert(lacks.begin() + 1, "kernel.pid_max");
  lacks.emplace_back("user.max_net_namespaces");
  EXPECT_EQ(names_not_ok(check_sysctls(system)), lacks);
}

TEST(Doctor, SettingsThatCannotBeReadHaveNoFix) {
  FakeSystem system;
  system.files.erase("/proc/sys/kernel/pid_max");
  const auto findings = check_sysctls(system);
  expect_explained(find(findings, "kernel.pid_max"), Verdict::kWarning);
  EXPECT_FALSE(find(findings, "kernel.pid_max").fix);
}

TEST(Doctor, SettingsOfWhatAKernelWasBuiltWithoutAreNotMissed) {
  FakeSystem system;
  system.files.erase("/proc/sys/net/ipv6/neigh/default/gc_thresh3");
  for (const Finding& finding : check_sysctls(system)) {
    EXPECT_NE(finding.name, "net.ipv6.neigh.default.gc_thresh3");
  }
}

}  // namespace
}  // namespace alcove::doctor
