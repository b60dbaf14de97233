// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// The first of the two processes that build a sandbox: what only the host's root may do.
#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "jail/boot_context.h"
#include "jail/lean_root.h"
#include "sys/message.h"
#include "sys/process.h"

namespace alcove::jail {
namespace {

// By writing itself to v1 `tasks`: naming a pid from outside waits for an RCU grace period.
int join_cgroups(BootContext& context) {
  for (const UniqueFd& tasks : context.v1_tasks) {
    if (::write(tasks.get(), "0", 1) != 1) return errno;
  }
  context.v1_tasks.clear();
  return 0;
}

// The upper directory holds host ids: an idmapped upper makes overlayfs fall back to read-only.
int own_upper(BootContext& context) {
  const uid_t root = context.request.range.first_id();
  for (const std::string* dir : {&context.request.upper_dir, &context.request.work_dir}) {
    context.detail = dir->c_str();
    if (::chown(dir->c_str(), root, root) != 0) return errno;
    if (::chmod(dir->c_str(), 0755) != 0) return errno;
  }
  // The mark of a volatile overlay that was not unmounted; overlayfs refuses to mount over it.
  const UniqueFd work(::open(context.request.work_dir.c_str(), O_PATH | O_CLOEXEC));
  if (!work.valid()) return errno;
  if (::unlinkat(work.get(), "work/incompat/volatile", AT_REMOVEDIR) != 0 && errno != ENOENT) {
    return errno;
  }
  return 0;
}

// Ids 0..65535 on disk become the sandbox's range.
int attach_layers(BootContext& context) {
  char at[32];
  for (size_t i = 0; i < context.request.layers.size(); ++i) {
    context.detail = context.request.layers[i].c_str();
    const UniqueFd tree(::open_tree(AT_FDCWD, context.detail, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
    if (!tree.valid()) return errno;
    mount_attr attributes{};
    attributes.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV;
    attributes.userns_fd = static_cast<uint64_t>(context.user_ns.get());
    if (::mount_setattr(tree.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0) {
      return errno;
    }
    std::snprintf(at, sizeof at, "%s/%zu", kLeanLayers, i);
    if (::move_mount(tree.get(), "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH) != 0) return errno;
  }
  return 0;
}

// nodev: a device node in a layer would be the host's device. The flag is locked for the sandbox,
// because this mount reaches it through a mount namespace of the host's root.
int mount_overlay(BootContext& context) {
  return errno_of(
      ::mount("overlay", kLeanOverlay, "overlay", MS_NODEV, context.overlay_options.c_str()));
}

// Without room for its work directory an overlay comes up read-only and says nothing.
int check_overlay_is_writable(BootContext&) {
  struct statvfs status{};
  if (::statvfs(kLeanOverlay, &status) != 0) return errno;
  return (status.f_flag & ST_RDONLY) != 0 ? EROFS : 0;
}

struct Device {
  const char* path;
  unsigned major;
  unsigned minor;
};
constexpr std::array kDevices = {
    Device{"/dev/null", 1, 3},    Device{"/dev/zero", 1, 5},       Device{"/dev/full", 1, 7},
    Device{"/dev/random", 1, 8},  Device{"/dev/urandom", 1, 9},    Device{"/dev/tty", 5, 0},
    Device{"/dev/fuse", 10, 229}, Device{"/dev/net/tun", 10, 200},
};

constexpr std::array kDevLinks = {
    std::pair{"/proc/self/fd", "/dev/fd"},       std::pair{"/proc/self/fd/0", "/dev/stdin"},
    std::pair{"/proc/self/fd/1", "/dev/stdout"}, std::pair{"/proc/self/fd/2", "/dev/stderr"},
    std::pair{"pts/ptmx", "/dev/ptmx"},
};

// New files belong to this id from here on. Leaving id 0 takes the capabilities to make device
// nodes out of the effective set; they are still permitted.
int make_files_as(uid_t id) {
  ::setfsgid(id);
  ::setfsuid(id);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return errno;
  for (__user_cap_data_struct& part : data) part.effective = part.permitted;
  return errno_of(::syscall(SYS_capset, &header, data));
}

// A tmpfs of the host's root, because device nodes work on no other; it belongs to the sandbox,
// which cannot make more of them.
int make_dev(BootContext& context) {
  if (::mount("dev", kLeanDev, "tmpfs", MS_NOSUID, context.dev_options.c_str()) != 0) return errno;
  if (const int error = make_files_as(context.request.range.first_id()); error != 0) return error;
  for (const char* dir : {"/dev/pts", "/dev/shm", "/dev/mqueue", "/dev/net"}) {
    context.detail = dir;
    if (::mkdir(dir, 0755) != 0) return errno;
  }
  for (const Device& device : kDevices) {
    context.detail = device.path;
    if (::mknod(device.path, S_IFCHR | 0666, ::makedev(device.major, device.minor)) != 0) {
      return errno;
    }
  }
  for (const auto& [target, path] : kDevLinks) {
    context.detail = path;
    if (::symlink(target, path) != 0) return errno;
  }
  return make_files_as(0);
}

int bind_read_only(const char* from, const char* to, unsigned long flags) {
  if (::mount(from, to, nullptr, MS_BIND, nullptr) != 0) return errno;
  return errno_of(::mount(nullptr, to, nullptr,
                          MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | flags,
                          nullptr));
}

int attach_agent(BootContext& context) {
  context.detail = context.request.agent_path.c_str();
  return bind_read_only(context.detail, kLeanAgent, /*flags=*/0);
}

int attach_interpreter(BootContext& context) {
  if (context.request.interpreter_path.empty()) return 0;
  context.detail = context.request.interpreter_path.c_str();
  return bind_read_only(context.detail, kLeanInterpreter, /*flags=*/0);
}

int attach_ca_bundle(BootContext& context) {
  if (context.request.ca_bundle.empty()) return 0;
  context.detail = context.request.ca_bundle.c_str();
  return bind_read_only(context.detail, kLeanCaBundle, MS_NOEXEC);
}

// Of the sandbox's share of the processors the agent gets its turn first, or a fork bomb would keep
// it from being stopped. What the agent starts for users has the usual priority.
int put_agent_first(BootContext&) {
  constexpr int kPriority = -10;
  const int error = errno_of(::setpriority(PRIO_PROCESS, 0, kPriority));
  // Without CAP_SYS_NICE (some containers) sandboxes start all the same.
  return error == EPERM || error == EACCES ? 0 : error;
}

// Opened while we may still write it: the file checks who opened it.
int open_time_offsets(BootContext& context) {
  context.time_offsets.reset(::open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC));
  return errno_of(context.time_offsets.get());
}

int enter_namespaces(BootContext& context) {
  if (::setns(context.user_ns.get(), CLONE_NEWUSER) != 0) return errno;
  return errno_of(::setns(context.net_ns.get(), CLONE_NEWNET));
}

int become_sandbox_root(BootContext&) {
  if (::setgroups(0, nullptr) != 0) return errno;
  if (::setresgid(0, 0, 0) != 0) return errno;
  return errno_of(::setresuid(0, 0, 0));
}

int listen_for_agent(BootContext& context) {
  constexpr int kBacklog = 4096;
  const int one = 1;
  const int zero = 0;
  UniqueFd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool v6 = fd.valid();
  if (!v6) fd.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errno;
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0) return errno;
  int bound;
  if (v6) {
    if (::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero) != 0) return errno;
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(context.request.agent_port);
    bound = ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  } else {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(context.request.agent_port);
    bound = ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  }
  if (bound != 0 || ::listen(fd.get(), kBacklog) != 0) return errno;
  context.listener = std::move(fd);
  return 0;
}

// The sandbox's clocks start near zero, as those of a machine that has just booted.
int start_clocks(BootContext& context) {
  if (::unshare(CLONE_NEWTIME) != 0) return errno;
  timespec monotonic{};
  timespec boottime{};
  if (::clock_gettime(CLOCK_MONOTONIC, &monotonic) != 0) return errno;
  if (::clock_gettime(CLOCK_BOOTTIME, &boottime) != 0) return errno;
  char text[96];
  const int size = std::snprintf(text, sizeof text, "monotonic %lld 0\nboottime %lld 0\n",
                                 -static_cast<long long>(monotonic.tv_sec),
                                 -static_cast<long long>(boottime.tv_sec));
  const ssize_t wrote = ::write(context.time_offsets.get(), text, static_cast<size_t>(size));
  context.time_offsets.reset();
  return errno_of(wrote);
}

int start_guest(BootContext& context) {
  int raw_pidfd = -1;
  const pid_t pid = sys::clone_process(
      {.flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWCGROUP,
       .pidfd = &raw_pidfd});
  if (pid < 0) return errno;
  if (pid == 0) run_guest_side(context);
  const UniqueFd pidfd(raw_pidfd);
  const auto sent = sys::send_message(context.status.get(), encode(Answer(ProcessStarted{pid})),
                                      std::array{pidfd.get()});
  if (!sent) {
    // Nobody would ever know of it.
    sys::kill_by_pidfd(pidfd.get());
    return sent.error().error_number();
  }
  return 0;
}

constexpr std::array kHostSteps = {
    Step{"join cgroups", join_cgroups},
    Step{"own the upper directory", own_upper},
    Step{"attach layers", attach_layers},
    Step{"mount overlay", mount_overlay},
    Step{"check that the overlay is writable", check_overlay_is_writable},
    Step{"make /dev", make_dev},
    Step{"attach agent", attach_agent},
    Step{"attach interpreter", attach_interpreter},
    Step{"attach CA bundle", attach_ca_bundle},
    Step{"put the agent first", put_agent_first},
    Step{"open time offsets", open_time_offsets},
    Step{"enter namespaces", enter_namespaces},
    Step{"become root of the sandbox", become_sandbox_root},
    Step{"listen for the agent", listen_for_agent},
    Step{"start clocks", start_clocks},
    Step{"start pid 1", start_guest},
};

}  // namespace

void run_host_side(BootContext& context) {
  run_steps(kHostSteps, context);
  ::_exit(0);
}

void run_steps(std::span<const Step> steps, BootContext& context) {
  for (const Step& step : steps) {
    context.detail = "";
    const int error = step.run(context);
    if (error == 0) continue;
    (void)sys::send_message(context.status.get(),
                            encode(Answer(StepFailed{step.name, context.detail, error})), {});
    ::_exit(1);
  }
}

}  // namespace alcove::jail
