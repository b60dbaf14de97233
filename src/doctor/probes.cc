// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "doctor/probes.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>

#include "base/strings.h"
#include "base/unique_fd.h"
#include "sys/file_io.h"
#include "sys/process.h"

namespace alcove::doctor {
namespace {

int errno_of(int result) { return result == 0 ? 0 : errno; }

int probe_namespace(int flag) { return errno_of(::unshare(flag)); }

// An overlay of directories in a file system of its own.
int probe_overlay() {
  if (::unshare(CLONE_NEWNS) != 0) return errno;
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return errno;
  if (::mount("tmpfs", "/tmp", "tmpfs", 0, nullptr) != 0) return errno;
  for (const char* name : {"/tmp/lower", "/tmp/upper", "/tmp/work", "/tmp/merged"}) {
    if (::mkdir(name, 0755) != 0) return errno;
  }
  return errno_of(::mount("overlay", "/tmp/merged", "overlay", 0,
                          "lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work"));
}

// A filter that allows everything, loaded as the launcher does it: without no_new_privs.
int probe_seccomp() {
  sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const sock_fprog program{.len = 1, .filter = &allow};
  return errno_of(static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)));
}

int probe_pidfd() {
  const auto fd = sys::open_pidfd(::getpid());
  return fd ? 0 : fd.error().error_number();
}

// Ends a helper process that only waits.
void end(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace

int probe(Feature feature) {
  switch (feature) {
    case Feature::kUserNamespace:
      return probe_namespace(CLONE_NEWUSER);
    case Feature::kPidNamespace:
      return probe_namespace(CLONE_NEWPID);
    case Feature::kMountNamespace:
      return probe_namespace(CLONE_NEWNS);
    case Feature::kNetworkNamespace:
      return probe_namespace(CLONE_NEWNET);
    case Feature::kUtsNamespace:
      return probe_namespace(CLONE_NEWUTS);
    case Feature::kIpcNamespace:
      return probe_namespace(CLONE_NEWIPC);
    case Feature::kCgroupNamespace:
      return probe_namespace(CLONE_NEWCGROUP);
    case Feature::kTimeNamespace:
      return probe_namespace(CLONE_NEWTIME);
    case Feature::kOverlay:
      return probe_overlay();
    case Feature::kSeccomp:
      return probe_seccomp();
    case Feature::kPidfd:
      return probe_pidfd();
    case Feature::kNftables:
      return probe_netfilter(NetfilterNeed::kTables);
    case Feature::kReject:
      return probe_netfilter(NetfilterNeed::kReject);
    case Feature::kTproxy:
      return probe_netfilter(NetfilterNeed::kTproxy);
    case Feature::kQueue:
      return probe_netfilter(NetfilterNeed::kQueue);
  }
  return EINVAL;
}

int probe_idmap(const std::string& directory) {
  const pid_t holder = sys::clone_process({.flags = CLONE_NEWUSER});
  if (holder < 0) return errno;
  if (holder == 0) {
    for (;;) ::pause();
  }
  int result = 0;
  const std::string proc = cat("/proc/", holder);
  for (const char* map : {"/uid_map", "/gid_map"}) {
    const auto written = sys::write_file(proc + map, "0 65536 65536");
    if (!written && result == 0) result = written.error().error_number();
  }
  if (result == 0) {
    const UniqueFd user_ns(::open((proc + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC));
    const UniqueFd tree(
        ::open_tree(AT_FDCWD, directory.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
    mount_attr attributes{};
    attributes.attr_set = MOUNT_ATTR_IDMAP;
    attributes.userns_fd = static_cast<uint64_t>(user_ns.get());
    if (!user_ns.valid() || !tree.valid() ||
        ::mount_setattr(tree.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0) {
      result = errno;
    }
  }
  end(holder);
  return result;
}

int probe_clone_into_cgroup(const std::string& cgroup2) {
  const std::string path = cat(cgroup2, "/alcove-doctor-", ::getpid());
  if (::mkdir(path.c_str(), 0755) != 0) return errno;
  int result = 0;
  {
    const UniqueFd cgroup(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const pid_t child = sys::clone_process({.cgroup_fd = cgroup.get()});
    if (child < 0) result = errno;
    if (child == 0) ::_exit(0);
    if (child > 0) ::waitpid(child, nullptr, 0);
  }
  // What has just ended may keep it for a moment.
  for (int i = 0; i < 100 && ::rmdir(path.c_str()) != 0 && errno == EBUSY; ++i) ::usleep(10000);
  return result;
}

}  // namespace alcove::doctor
