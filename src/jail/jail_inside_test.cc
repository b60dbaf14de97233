// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// What a sandbox sees and may do, and what it must not.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <fstream>

#include "base/sanitized.h"
#include "jail/jail_record.h"
#include "jail/testing/jail_fixture.h"

namespace alcove::jail {
namespace {

using sandbox::Machine;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class JailInsideTest : public jail::testing::JailFixture {
 protected:
  // Boots once; gives the answer of the commands.
  std::string inside(const std::string& commands) {
    if (machine_ == nullptr) machine_ = boot();
    if (machine_ == nullptr) return "no machine";
    return ask(*machine_, commands);
  }
  static std::string refused(int error) { return cat("-1 ", error, "\n"); }

  Machine* machine_ = nullptr;
};

TEST_F(JailInsideTest, NoDescriptorOfTheHostIsOpen) {
  // 4 is the connection of this question, 5 the directory being listed.
  const std::string fds = inside("pid1\nls /proc/self/fd");
  std::vector<std::string> lines;
  for (const std::string_view line : split(fds, '\n')) {
    if (!line.empty()) lines.emplace_back(line);
  }
  ASSERT_EQ(lines.size(), 6u) << fds;
  EXPECT_EQ(lines[0], "0 -> /dev/null");
  EXPECT_EQ(lines[1], "1 -> /dev/null");
  // With a sanitizer its reports go there, to the server's log.
  if constexpr (!kSanitized) {
    EXPECT_EQ(lines[2], "2 -> /dev/null");
  }
  EXPECT_THAT(lines[3], StartsWith("3 -> socket:"));
  EXPECT_THAT(lines[4], StartsWith("4 -> socket:"));
  EXPECT_EQ(lines[5], "5 -> /proc/1/fd");
  // stdio is on the sandbox's own /dev.
  EXPECT_THAT(inside("stat /dev/null"), "20666 0 0\n");
}

TEST_F(JailInsideTest, IsRootInAUserNamespaceOfItsOwn) {
  const std::string status = inside("pid1\nread /proc/self/status\nread /proc/self/uid_map");
  EXPECT_THAT(status, AllOf(HasSubstr("\nPid:\t1\n"), HasSubstr("\nUid:\t0\t0\t0\t0\n"),
                            HasSubstr("\nGroups:\t \n"), HasSubstr("CapEff:\t000001ffffffffff\n"),
                            HasSubstr("\nNoNewPrivs:\t0\n"), HasSubstr("\nSeccomp:\t2\n"),
                            HasSubstr("\nSigIgn:\t0000000000000000\n"),
                            HasSubstr("\nSigBlk:\t0000000000000000\n"),
                            HasSubstr("\nUmask:\t0022\n"), HasSubstr("      65536\n")));
  const pid_t pid = parse_jail_record(machine_->record())->pid;
  for (const char* name :
       {"user", "mnt", "pid_for_children", "net", "uts", "ipc", "cgroup", "time"}) {
    const auto own = std::filesystem::read_symlink(cat("/proc/self/ns/", name));
    EXPECT_NE(std::filesystem::read_symlink(cat("/proc/", pid, "/ns/", name)), own) << name;
  }
}

TEST_F(JailInsideTest, SeesACaBundleThatItCannotChange) {
  sandbox::BootSpec spec = make_spec();
  spec.ca_bundle = data_dir_ + "/bundle";
  std::ofstream(spec.ca_bundle) << "certificates\n";
  machine_ = boot(spec);
  EXPECT_EQ(inside("read /run/alcove/ca-certificates.crt"), "certificates\n");
  EXPECT_EQ(inside("write /run/alcove/ca-certificates.crt x"), cat("error ", EROFS, "\n"));
  EXPECT_EQ(inside(cat("sys ", SYS_mount, " 0 \"/run/alcove/ca-certificates.crt 0 ",
                       MS_REMOUNT | MS_BIND, " 0")),
            refused(EPERM));
  EXPECT_THAT(inside("read /proc/self/mountinfo"),
              AllOf(HasSubstr("ca-certificates.crt"), Not(HasSubstr(data_dir_))));
  // What is mounted on a file of /run leaves nothing in the sandbox's own files.
  EXPECT_TRUE(std::filesystem::is_empty(spec.upper_dir + "/run"));
}

TEST_F(JailInsideTest, SeesNoCaBundleUnlessGiven) {
  EXPECT_EQ(inside("stat /run/alcove/ca-certificates.crt"), cat("error ", ENOENT, "\n"));
}

TEST_F(JailInsideTest, MountTableShowsNothingOfTheHost) {
  const std::string mounts = inside("read /proc/self/mountinfo");
  EXPECT_THAT(mounts, Not(HasSubstr(data_dir_)));
  EXPECT_THAT(mounts, Not(HasSubstr("/dev/vda")));
  for (const std::string_view line : split(mounts, '\n')) {
    if (line.empty()) continue;
    const std::string_view type = split(line.substr(line.find(" - ") + 3), ' ')[0];
    EXPECT_THAT((std::vector<std::string_view>{"overlay", "proc", "sysfs", "tmpfs", "devpts",
                                               "mqueue", "cgroup", "cgroup2"}),
                ::testing::Contains(type))
        << line;
  }
  EXPECT_THAT(inside("read /proc/self/cgroup"), Not(HasSubstr(prefix_)));
  EXPECT_EQ(inside("ls /data\nls /look\nls /layers"), "error 2\nerror 2\nerror 2\n");
}

TEST_F(JailInsideTest, SeesOnlyItsOwnProcesses) {
  const std::string names = inside("ls /proc");
  for (const std::string_view name : split(names, '\n')) {
    if (const auto pid = parse_number<int>(name)) EXPECT_LE(*pid, 9) << name;
  }
}

TEST_F(JailInsideTest, LooksLikeAMachineOfItsSize) {
  const std::string cpuinfo = inside("read /proc/cpuinfo");
  EXPECT_THAT(cpuinfo, StartsWith("processor\t: 0\n"));
  EXPECT_EQ(cpuinfo.find("processor\t: 1\n"), std::string::npos);
  EXPECT_THAT(inside("read /proc/meminfo"), StartsWith("MemTotal:           65536 kB\n"));
  EXPECT_THAT(inside("read /proc/stat"), AllOf(HasSubstr("cpu0 "), Not(HasSubstr("cpu1 "))));
  EXPECT_EQ(inside("read /proc/loadavg"), "0.00 0.00 0.00 1/1 1\n");
  EXPECT_EQ(inside("read /sys/devices/system/cpu/online"), "0\n");
  EXPECT_THAT(inside("read /proc/self/status"), HasSubstr("Cpus_allowed_list:\t"));
  const std::string uptime = inside("read /proc/uptime");
  EXPECT_LT(std::atof(uptime.c_str()), 60.0) << uptime;
  EXPECT_EQ(inside("write /proc/meminfo x"), cat("error ", EROFS, "\n"));
}

TEST_F(JailInsideTest, NetworkIsItsOwnLoopback) {
  const auto home = std::filesystem::read_symlink("/proc/thread-self/ns/net");
  const std::string devices = inside("read /proc/net/dev");
  EXPECT_THAT(devices, HasSubstr(" lo:"));
  EXPECT_THAT(devices, Not(HasSubstr("eth")));
  // A port that the host listens on is not there.
  const auto fd = machine_->connect(1, Machine::Family::kV4);
  if (fd) {
    pollfd waiting{fd->get(), POLLOUT, 0};
    ASSERT_EQ(::poll(&waiting, 1, 10'000), 1);
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd->get(), SOL_SOCKET, SO_ERROR, &error, &size);
    EXPECT_EQ(error, ECONNREFUSED);
  } else {
    EXPECT_EQ(fd.error().error_number(), ECONNREFUSED);
  }
  // The thread that connected is back at home.
  EXPECT_EQ(std::filesystem::read_symlink("/proc/thread-self/ns/net"), home);
}

TEST_F(JailInsideTest, DevicesWorkAndNoOthersCanBeMade) {
  const std::string devices = inside("ls /dev");
  for (const char* name : {"null", "zero", "full", "random", "urandom", "tty", "fuse", "ptmx",
                           "pts", "shm", "mqueue", "fd", "stdin", "stdout", "stderr", "net"}) {
    EXPECT_THAT(cat("\n", devices), HasSubstr(cat("\n", name)));
  }
  for (const char* name : {"kvm", "vda", "mem", "kmsg", "console", "loop"}) {
    EXPECT_THAT(cat("\n", devices), Not(HasSubstr(cat("\n", name)))) << name;
  }
  EXPECT_EQ(inside("write /dev/null x\nwrite /dev/full x"), cat("ok\nerror ", ENOSPC, "\n"));
  EXPECT_THAT(inside("sys 2 \"/dev/ptmx 2 0"), Not(StartsWith("-1")));
  EXPECT_THAT(inside("sys 2 \"/dev/fuse 2 0"), Not(StartsWith("-1")));
  EXPECT_EQ(inside(cat("sys 133 \"/tmp/disk ", S_IFBLK | 0666, " ", ::makedev(254, 0))),
            refused(EPERM));
  EXPECT_EQ(inside(cat("sys 133 \"/dev/zero2 ", S_IFCHR | 0666, " ", ::makedev(1, 5))),
            refused(EPERM));
}

TEST_F(JailInsideTest, ADeviceNodeInALayerIsDead) {
  ASSERT_EQ(::mknod((data_dir_ + "/layer/zero").c_str(), S_IFCHR | 0666, ::makedev(1, 5)), 0);
  ASSERT_EQ(::chmod((data_dir_ + "/layer/zero").c_str(), 0666), 0);
  EXPECT_EQ(inside("sys 2 \"/zero 0 0"), refused(EACCES));
  // MS_REMOUNT | MS_BIND: without nodev.
  EXPECT_EQ(inside(cat("sys 165 0 \"/ 0 ", 32 | 4096, " 0")), refused(EPERM));
  EXPECT_EQ(inside("sys 2 \"/zero 0 0"), refused(EACCES));
}

TEST_F(JailInsideTest, SymbolicLinksOfATemplateLeadNowhere) {
  for (const char* name : {"proc", "sys", "dev", "run", "tmp"}) {
    std::filesystem::create_directory(data_dir_ + "/layer/real-" + name);
  }
  std::filesystem::create_symlink("/real-dev", data_dir_ + "/layer/dev");
  std::filesystem::create_symlink("../../../real-run", data_dir_ + "/layer/run");
  EXPECT_THAT(inside("ls /real-dev"), HasSubstr("null"));
  EXPECT_EQ(inside("stat /real-run/alcove"), "40755 0 0\n");

  // Into the launcher's own directories: they do not exist for the sandbox.
  std::filesystem::create_symlink("../data", data_dir_ + "/layer/sys");
  sandbox::BootSpec spec = make_spec();
  const auto machine = driver_->boot(spec);
  ASSERT_FALSE(machine);
  EXPECT_THAT(machine.error().message(), HasSubstr("mount /sys"));
  EXPECT_EQ(machine.error().error_number(), ENOENT);
}

TEST_F(JailInsideTest, WaysOutAreClosed) {
  // The old trick: unmount the root and enter the mount namespace again.
  EXPECT_THAT(inside(cat("sys 166 \"/ 2\nsys 2 \"/proc/self/ns/mnt 0 0\nsys 308 5 ", CLONE_NEWNS,
                         "\nls /data\nls /proc/1/root/data")),
              AllOf(StartsWith(refused(EINVAL)), HasSubstr("error 2\nerror 2\n")));
  EXPECT_EQ(inside("sys 161 \"/tmp\nsys 80 \"../../../../..\nls data"), "0 0\n0 0\nerror 2\n");
  for (const char* file :
       {"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/drop_caches",
        "/proc/sysrq-trigger", "/proc/sys/kernel/randomize_va_space",
        "/sys/kernel/mm/transparent_hugepage/enabled"}) {
    EXPECT_THAT(inside(cat("write ", file, " 1")),
                ::testing::AnyOf(cat("error ", EACCES, "\n"), cat("error ", EROFS, "\n"),
                                 cat("error ", ENOENT, "\n")))
        << file;
  }
  // /sys made writable by its owner is still the host's files.
  for (const int flags : {32 | 4096, 32}) {
    EXPECT_THAT(inside(cat("sys 165 0 \"/sys 0 ", flags,
                           " 0\nwrite /sys/kernel/mm/transparent_hugepage/enabled never")),
                HasSubstr("error "));
  }
  EXPECT_EQ(inside("read /proc/kmsg"), cat("error ", EACCES, "\n"));
  // The agent's file is one for all sandboxes.
  EXPECT_EQ(inside(cat("sys 165 0 \"/run/alcove/agent 0 ", 32 | 4096, " 0")), refused(EPERM));
  EXPECT_EQ(inside("sys 2 \"/run/alcove/agent 2 0"), refused(EACCES));
  EXPECT_EQ(inside("sys 90 \"/run/alcove/agent 0777"), refused(EROFS));
  EXPECT_THAT(inside(cat("write /proc/self/oom_score_adj -1000")), cat("error ", EACCES, "\n"));
}

TEST_F(JailInsideTest, LimitsCannotBeRaised) {
  EXPECT_EQ(inside("sys 83 \"/tmp/cg 0755\nsys 165 \"none \"/tmp/cg \"cgroup 0 \"memory\n"
                   "write /tmp/cg/memory.limit_in_bytes 999999999999"),
            cat("0 0\n0 0\nerror ", EACCES, "\n"));
  EXPECT_EQ(inside("sys 83 \"/tmp/cg2 0755\nsys 165 \"none \"/tmp/cg2 \"cgroup2 0 0\n"
                   "sys 83 \"/tmp/cg2/own 0755"),
            cat("0 0\n0 0\n", refused(EACCES)));
  // prlimit of the core size, so that the host's core dump handler never starts.
  EXPECT_THAT(inside("pid1\nread /proc/self/limits"),
              HasSubstr("Max core file size        1                    1 "));
}

// What the kernel counts per user in it counts for that id, not for all sandboxes together.
TEST_F(JailInsideTest, UserNamespaceIsMadeByAnIdOfItsOwn) {
  const Machine* machine = boot();
  ASSERT_NE(machine, nullptr);
  const auto record = parse_jail_record(machine->record());
  ASSERT_TRUE(record);
  const auto user_ns = sys::open_file(cat("/proc/", record->pid, "/ns/user"), O_RDONLY);
  ASSERT_TRUE(user_ns);
  uid_t owner = 0;
  ASSERT_EQ(::ioctl(user_ns->get(), NS_GET_OWNER_UID, &owner), 0);
  EXPECT_EQ(owner, record->range.first_id());
}

TEST_F(JailInsideTest, TerminalsAreLimited) {
  constexpr int kOpenTerminals = 600;
  std::string open_all;
  for (int i = 0; i < kOpenTerminals; ++i) open_all += "sys 2 \"/dev/ptmx 0x102\n";
  const std::string answers = inside(open_all);
  EXPECT_THAT(answers, HasSubstr("-1 28\n"));
}

TEST_F(JailInsideTest, RefusesDangerousSystemCalls) {
  EXPECT_EQ(inside("sys 41 40 1 0"), refused(EAFNOSUPPORT)) << "AF_VSOCK";
  EXPECT_EQ(inside("sys 41 0x100000028 1 0"), refused(EAFNOSUPPORT)) << "AF_VSOCK in 64 bits";
  EXPECT_EQ(inside("sys 41 38 5 0"), refused(EAFNOSUPPORT)) << "AF_ALG";
  EXPECT_EQ(inside("sys 246 0 0 0 0"), refused(EPERM)) << "kexec_load";
  EXPECT_EQ(inside("sys 175 0 0 0"), refused(EPERM)) << "init_module";
  EXPECT_EQ(inside("sys 321 0 0 0"), refused(EPERM)) << "bpf";
  EXPECT_EQ(inside("sys 250 0 0 0"), refused(EPERM)) << "keyctl";
  EXPECT_EQ(inside("sys 425 1 0"), refused(ENOSYS)) << "io_uring_setup";
  EXPECT_EQ(inside("sys 304 -100 0 0"), refused(EPERM)) << "open_by_handle_at";
  EXPECT_EQ(inside("sys 169 0xfee1dead 672274793 0x1234567 0"), refused(EPERM)) << "reboot";
}

TEST_F(JailInsideTest, ShowsItsLimitsAsCgroups) {
  const bool v2 = inside("stat /sys/fs/cgroup/cgroup.procs").find("error") == std::string::npos;
  const std::string mount = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
  const std::string file = mount + (v2 ? "/memory.max" : "/memory.limit_in_bytes");
  EXPECT_EQ(inside(cat("read ", file)), "67108864\n");
  EXPECT_EQ(inside(cat("write ", file, " 999999999")), cat("error ", EROFS, "\n"));
  EXPECT_EQ(inside(cat("sys 165 0 \"", mount, " 0 ", 32 | 4096, " 0")), refused(EPERM));
}

TEST_F(JailInsideTest, AContainerInsideMayMountItsOwnProc) {
  EXPECT_EQ(inside(cat("sys 272 ", CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID,
                       "\nwrite /proc/self/uid_map 0 0 1\nrun /run/alcove/agent --mount-proc")),
            "0 0\nok\npid 1: 0 0\n");
}

TEST_F(JailInsideTest, SetUserIdProgramsWork) {
  std::filesystem::copy_file(ALCOVE_PROBE_AGENT, data_dir_ + "/layer/bin/sudo");
  ASSERT_EQ(::chmod((data_dir_ + "/layer/bin/sudo").c_str(), 04755), 0);
  EXPECT_EQ(inside("sys 119 1000 1000 1000\nsys 117 1000 1000 1000\nrun /bin/sudo --whoami"),
            "0 0\n0 0\nuid 1000 euid 0\n");
}

TEST_F(JailInsideTest, WhatProgramsNeedIsAllowed) {
  EXPECT_EQ(inside(cat("sys 272 ", CLONE_NEWUSER)), "0 0\n") << "unshare";
  EXPECT_EQ(inside("sys 165 \"tmp \"/tmp \"tmpfs 0 0\nwrite /tmp/x y"), "0 0\nok\n");
  EXPECT_EQ(inside("sys 170 \"name 4\nread /proc/sys/kernel/hostname"), "0 0\nname\n");
  EXPECT_EQ(inside("sys 162"), "0 0\n") << "sync";
  EXPECT_THAT(inside("sys 41 17 3 0"), Not(StartsWith("-1"))) << "AF_PACKET";
  EXPECT_THAT(inside("sys 41 16 3 12"), Not(StartsWith("-1"))) << "nfnetlink";
  EXPECT_EQ(inside("sys 135 0x40000"), "0 0\n") << "personality without randomisation";
  EXPECT_EQ(inside("write /dev/shm/x y\nwrite /run/lock/x y\nwrite /tmp/x y"), "ok\nok\nok\n");
  EXPECT_EQ(inside("stat /tmp\nstat /run\nstat /run/lock\nstat /dev/shm"),
            "41777 0 0\n40755 0 0\n41777 0 0\n41777 0 0\n");
}

}  // namespace
}  // namespace alcove::jail
