// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// The second process: root of the sandbox's user namespace, pid 1 of its pid namespace. Turns what
// the first one prepared into the sandbox's root directory and becomes the agent.
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string_view>

#include "base/sanitized.h"
#include "jail/boot_context.h"
#include "jail/lean_root.h"
#include "sandbox/driver.h"

namespace alcove::jail {
namespace {

constexpr int kListenerFd = 3;
constexpr int kStatusFd = 4;
constexpr const char* kAgent = "/run/alcove/agent";
constexpr const char* kStat = "/run/alcove/stat";

int new_session(BootContext&) { return errno_of(::setsid()); }

int set_hostname(BootContext& context) {
  const std::string& name = context.request.hostname;
  return errno_of(::sethostname(name.data(), name.size()));
}

// The overlay is locked in this namespace (it came from a more privileged one); a bind of it is
// not, and can become the root. From here on every absolute path is looked up in the sandbox's
// root, so that a symbolic link of a template leads nowhere else. The working directory stays in
// the lean root, for sources.
int enter_root(BootContext&) {
  if (::mount(kLeanOverlay, kLeanRoot, nullptr, MS_BIND, nullptr) != 0) return errno;
  return errno_of(::chroot(kLeanRoot));
}

// Relative to the lean root, the working directory.
const char* lean(const char* absolute) { return absolute + 1; }

// A foreign root may lack the mount point.
int mount_at(const char* source, const char* target, const char* type, unsigned long flags,
             const char* options) {
  if (::mount(source, target, type, flags, options) == 0) return 0;
  if (errno != ENOENT) return errno;
  // EEXIST: a symbolic link to nowhere.
  if (::mkdir(target, 0755) != 0) return errno == EEXIST ? ENOENT : errno;
  return errno_of(::mount(source, target, type, flags, options));
}

int mount_proc(BootContext&) {
  return mount_at("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr);
}

int mount_sys(BootContext&) {
  return mount_at("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, nullptr);
}

int mount_dev(BootContext& context) {
  if (const int error = mount_at(lean(kLeanDev), "/dev", nullptr, MS_BIND, nullptr); error != 0) {
    return error;
  }
  context.detail = "/dev/pts";
  // All terminals of the machine together are limited, so each sandbox has a limit too: against
  // programs that forget to close them. Its root can lift it, up to kernel.pty.max, which the
  // doctor raises for many sandboxes.
  if (::mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
              "newinstance,ptmxmode=0666,mode=0620,gid=5,max=512") != 0) {
    return errno;
  }
  context.detail = "/dev/shm";
  if (::mount("shm", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, context.shm_options.c_str()) != 0) {
    return errno;
  }
  context.detail = "/dev/mqueue";
  return errno_of(
      ::mount("mqueue", "/dev/mqueue", "mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr));
}

int write_new_file(const char* path, std::string_view content) {
  const UniqueFd fd(::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444));
  if (!fd.valid()) return errno;
  return errno_of(::write(fd.get(), content.data(), content.size()));
}

int mount_run(BootContext& context) {
  if (const int error =
          mount_at("run", "/run", "tmpfs", MS_NOSUID | MS_NODEV, context.run_options.c_str());
      error != 0) {
    return error;
  }
  if (::mkdir("/run/lock", 01777) != 0 || ::mkdir("/run/alcove", 0755) != 0) return errno;
  if (const int error = write_new_file(kAgent, ""); error != 0) return error;
  if (const int error = write_new_file(kStat, context.stat_text); error != 0) return error;
  context.detail = kAgent;
  return errno_of(::mount(lean(kLeanAgent), kAgent, nullptr, MS_BIND, nullptr));
}

int show_interpreter(BootContext& context) {
  if (context.request.interpreter_path.empty()) return 0;
  context.detail = sandbox::kInterpreterInside;
  if (const int error = write_new_file(sandbox::kInterpreterInside, ""); error != 0) return error;
  return errno_of(
      ::mount(lean(kLeanInterpreter), sandbox::kInterpreterInside, nullptr, MS_BIND, nullptr));
}

int show_ca_bundle(BootContext& context) {
  if (context.request.ca_bundle.empty()) return 0;
  context.detail = sandbox::kCaBundleInside;
  if (const int error = write_new_file(sandbox::kCaBundleInside, ""); error != 0) return error;
  return errno_of(
      ::mount(lean(kLeanCaBundle), sandbox::kCaBundleInside, nullptr, MS_BIND, nullptr));
}

// It stays in the overlay.
int make_tmp(BootContext&) { return ::mkdir("/tmp", 01777) == 0 || errno == EEXIST ? 0 : errno; }

// A container inside may mount a /proc and /sys of its own only while such without anything over
// them are in sight, so these stay beside the masked ones. For root only, who could take the masks
// off anyway.
int keep_for_nesting(BootContext& context) {
  if (::mkdir("/run/alcove/nesting", 0700) != 0) return errno;
  for (const auto& [source, target] : {std::pair{"/proc", "/run/alcove/nesting/proc"},
                                       std::pair{"/sys", "/run/alcove/nesting/sys"}}) {
    context.detail = target;
    if (::mkdir(target, 0755) != 0) return errno;
    if (::mount(source, target, nullptr, MS_BIND, nullptr) != 0) return errno;
  }
  return 0;
}

// The limits where a JVM and others look for them.
int mount_cgroups(BootContext& context) {
  if (context.cgroup_binds.empty()) return 0;
  const bool one_hierarchy = context.cgroup_binds[0].second == "/sys/fs/cgroup";
  if (!one_hierarchy &&
      ::mount("cgroup", "/sys/fs/cgroup", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              "mode=755,size=64k,nr_inodes=32") != 0) {
    return errno;
  }
  for (const auto& [source, target] : context.cgroup_binds) {
    context.detail = target.c_str();
    if (!one_hierarchy && ::mkdir(target.c_str(), 0755) != 0) return errno;
    if (::mount(lean(source.c_str()), target.c_str(), nullptr, MS_BIND, nullptr) != 0) {
      return errno;
    }
  }
  return 0;
}

// What tells of the host or of its other users and can be read by anyone. What only the host's root
// may open (kcore, timer_list, sysrq-trigger, ...) is closed to a user namespace anyway.
constexpr std::array kMaskedFiles = {
    "/proc/keys",
    "/proc/sched_debug",
    "/proc/latency_stats",
    "/proc/cmdline",
};
constexpr std::array kMaskedDirs = {
    "/proc/acpi", "/proc/scsi", "/proc/asound", "/sys/firmware", "/sys/devices/virtual/powercap",
};

int bind_if_present(const char* source, const char* target) {
  if (::mount(source, target, nullptr, MS_BIND, nullptr) == 0 || errno == ENOENT) return 0;
  return errno;
}

int mask(BootContext& context) {
  for (const char* path : kMaskedFiles) {
    context.detail = path;
    if (const int error = bind_if_present(lean(kLeanEmptyFile), path); error != 0) return error;
  }
  for (const char* path : kMaskedDirs) {
    context.detail = path;
    if (const int error = bind_if_present(lean(kLeanEmptyDir), path); error != 0) return error;
  }
  return 0;
}

int look_like_a_machine(BootContext& context) {
  constexpr std::array kFiles = {
      std::pair{"cpuinfo", "/proc/cpuinfo"},
      std::pair{"meminfo", "/proc/meminfo"},
      std::pair{"loadavg", "/proc/loadavg"},
      std::pair{"cpus", "/sys/devices/system/cpu/online"},
      std::pair{"cpus", "/sys/devices/system/cpu/possible"},
  };
  if (::chdir(lean(context.look_dir.c_str())) != 0) return errno;
  for (const auto& [source, target] : kFiles) {
    context.detail = target;
    if (const int error = bind_if_present(source, target); error != 0) return error;
  }
  context.detail = "/proc/stat";
  if (const int error = bind_if_present(kStat, "/proc/stat"); error != 0) return error;
  return errno_of(::chdir("../.."));
}

// chroot(2) alone holds nobody with CAP_SYS_ADMIN: the real root of this mount namespace changes,
// and the launcher's with the host's /proc and data directory goes.
int leave_lean_root(BootContext&) {
  if (::chroot(".") != 0) return errno;
  if (::chdir(kLeanRoot) != 0) return errno;
  if (::syscall(SYS_pivot_root, ".", ".") != 0) return errno;
  if (::umount2(".", MNT_DETACH) != 0) return errno;
  return errno_of(::chdir("/"));
}

constexpr int kLastNullFd = kSanitized ? STDOUT_FILENO : STDERR_FILENO;

// Nothing of the host's stays open: stdio is the sandbox's own /dev/null.
int keep_only_own_descriptors(BootContext& context) {
  // Out of the way of the numbers they are going to have.
  auto move_up = [](int fd) { return ::fcntl(fd, F_DUPFD_CLOEXEC, kStatusFd + 1); };
  const int listener = move_up(context.listener.get());
  const int status = move_up(context.status.get());
  const int null = move_up(UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)).get());
  if (listener < 0 || status < 0 || null < 0) return errno;
  for (int fd = 0; fd <= kLastNullFd; ++fd) {
    if (::dup2(null, fd) < 0) return errno;
  }
  if (::dup2(listener, kListenerFd) < 0) return errno;
  if (::dup3(status, kStatusFd, O_CLOEXEC) < 0) return errno;
  (void)context.listener.release();
  (void)context.status.release();
  context.status.reset(kStatusFd);
  return errno_of(::close_range(kStatusFd + 1, ~0U, 0));
}

int set_limits(BootContext&) {
  ::umask(022);
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return errno;
  files.rlim_cur = files.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &files) != 0) return errno;
  // Not 0 but 1: the kernel's sign not to start the host's core dump handler either, which would
  // run as the host's root on what a sandbox wrote (core(5), "Piping core dumps to a program").
  const rlimit core{1, 1};
  return errno_of(::setrlimit(RLIMIT_CORE, &core));
}

// The launcher ignores this one and blocks none; the others are as its parent set them: default.
int reset_signals(BootContext&) { return ::signal(SIGCHLD, SIG_DFL) == SIG_ERR ? errno : 0; }

int run_agent(BootContext& context) {
  static const char kPath[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  const std::array<char*, 2> environment = {const_cast<char*>(kPath), nullptr};
  context.detail = context.request.agent_path.c_str();
  ::execve(kAgent, context.agent_argv.data(), environment.data());
  return errno;
}

constexpr std::array kGuestSteps = {
    Step{"new session", new_session},
    Step{"set hostname", set_hostname},
    Step{"enter root", enter_root},
    Step{"mount /proc", mount_proc},
    Step{"mount /sys", mount_sys},
    Step{"mount /dev", mount_dev},
    Step{"mount /run", mount_run},
    Step{"show the interpreter", show_interpreter},
    Step{"show the CA bundle", show_ca_bundle},
    Step{"make /tmp", make_tmp},
    Step{"keep /proc and /sys for nesting", keep_for_nesting},
    Step{"mount cgroups", mount_cgroups},
    Step{"mask files of the host", mask},
    Step{"look like a machine", look_like_a_machine},
    Step{"leave the launcher's root", leave_lean_root},
    Step{"keep only own descriptors", keep_only_own_descriptors},
    Step{"set limits", set_limits},
    Step{"reset signals", reset_signals},
    Step{"run agent", run_agent},
};

}  // namespace

void run_guest_side(BootContext& context) {
  run_steps(kGuestSteps, context);
  ::_exit(1);
}

}  // namespace alcove::jail
