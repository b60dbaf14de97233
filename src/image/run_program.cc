// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "image/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/defer.h"
#include "base/strings.h"
#include "base/unique_fd.h"
#include "image/line_tail.h"

extern char** environ;

namespace alcove::image {
namespace {

using SteadyClock = std::chrono::steady_clock;

Result<pid_t> spawn(const Program& program, int output_fd) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  Defer destroy([&] {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  });
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output_fd, 1);
  ::posix_spawn_file_actions_adddup2(&actions, output_fd, 2);
  if (program.inherited_fd >= 0) {
    // dup2 onto itself clears close-on-exec (POSIX since 2008, glibc >= 2.29).
    ::posix_spawn_file_actions_adddup2(&actions, program.inherited_fd, program.inherited_fd);
  }
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<char*> argv;
  for (const std::string& arg : program.argv) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  if (error != 0) return fail_errno(error, cat("start ", program.argv[0]));
  return pid;
}

constexpr std::chrono::milliseconds kLookForCancel{200};

bool is_canceled(const Program& program) {
  return program.canceled != nullptr && program.canceled->load();
}

// Reads until the pipe closes; false if the deadline or the end of patience came first.
bool collect(int fd, const Program& program, LineTail& lines) {
  const auto deadline = SteadyClock::now() + program.timeout;
  char buffer[8192];
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SteadyClock::now());
    if (left.count() <= 0 || is_canceled(program)) return false;
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    const int n = ::poll(&ready, 1, static_cast<int>(std::min(left, kLookForCancel).count()));
    if (n <= 0) continue;
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got == 0) return true;
    if (got > 0) {
      lines.append(std::string_view(buffer, static_cast<size_t>(got)));
    } else if (errno != EINTR && errno != EAGAIN) {
      return true;
    }
  }
}

}  // namespace

Result<void> run_program(const Program& program) {
  int pipe_fds[2];
  if (::pipe2(pipe_fds, O_CLOEXEC) != 0) return fail_errno(errno, "pipe2");
  UniqueFd read_end(pipe_fds[0]);
  UniqueFd write_end(pipe_fds[1]);
  ALCOVE_TRY_ASSIGN(const pid_t pid, spawn(program, write_end.get()));
  write_end.reset();

  LineTail lines(program.on_line);
  const bool in_time = collect(read_end.get(), program, lines);
  if (!in_time) ::kill(-pid, SIGKILL);
  lines.finish();
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return fail_errno(errno, cat("wait for ", program.argv[0]));
  }
  if (!in_time && is_canceled(program)) {
    return fail(Code::kCanceled, cat(program.argv[0], " was stopped"));
  }
  if (!in_time) {
    return fail(Code::kDeadlineExceeded, cat(program.argv[0], " did not finish within ",
                                             program.timeout.count(), " s:\n", lines.tail()));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  const std::string how = WIFEXITED(status) ? cat("exit status ", WEXITSTATUS(status))
                                            : cat("signal ", WTERMSIG(status));
  return fail(Code::kUnknown, cat(program.argv[0], " failed with ", how, ":\n", lines.tail()));
}

}  // namespace alcove::image
