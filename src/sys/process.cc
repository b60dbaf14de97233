// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "sys/process.h"

#include <linux/sched.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/strings.h"
#include "sys/file_io.h"

namespace alcove::sys {

pid_t clone_process(const CloneOptions& options) {
  clone_args args{};
  args.flags = options.flags;
  args.exit_signal = SIGCHLD;
  if (options.cgroup_fd >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<uint64_t>(options.cgroup_fd);
  }
  if (options.pidfd != nullptr) {
    args.flags |= CLONE_PIDFD;
    args.pidfd = reinterpret_cast<uint64_t>(options.pidfd);
  }
  return static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof args));
}

Result<UniqueFd> open_pidfd(pid_t pid) {
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) return fail_errno(errno, cat("pidfd_open ", pid));
  return UniqueFd(fd);
}

void kill_by_pidfd(int pidfd) {
  (void)::syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0);
}

bool wait_by_pidfd(int pidfd, std::chrono::steady_clock::time_point deadline) {
  using std::chrono::ceil, std::chrono::milliseconds, std::chrono::steady_clock;
  for (;;) {
    const auto left = ceil<milliseconds>(deadline - steady_clock::now());
    pollfd waiting{pidfd, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, left.count() > 0 ? static_cast<int>(left.count()) : 0);
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) return false;
  }
}

Result<uint64_t> process_start_time(pid_t pid) {
  ALCOVE_TRY_ASSIGN(const std::string stat, read_file(cat("/proc/", pid, "/stat")));
  // The second field is the program's name in parentheses and may hold anything.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return fail(Code::kInternal, "malformed /proc/<pid>/stat");
  const std::string_view rest = std::string_view(stat).substr(name_end + 1);
  const auto fields = split(rest, ' ');
  constexpr size_t kStartTime = 20;  // field 22; fields[0] is empty, fields[1] is field 3
  if (fields.size() <= kStartTime) return fail(Code::kInternal, "malformed /proc/<pid>/stat");
  const auto value = parse_number<uint64_t>(fields[kStartTime]);
  if (!value) return fail(Code::kInternal, "malformed /proc/<pid>/stat");
  return *value;
}

}  // namespace alcove::sys
