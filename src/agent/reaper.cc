// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/reaper.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <cerrno>
#include <utility>

namespace alcove::agent {

Result<std::unique_ptr<ChildReaper>> ChildReaper::create(
    const boost::asio::any_io_executor& executor) {
  sigset_t mask;
  ::sigemptyset(&mask);
  ::sigaddset(&mask, SIGCHLD);
  UniqueFd fd(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return fail_errno(errno, "signalfd");
  return std::unique_ptr<ChildReaper>(new ChildReaper(net::FdStream(executor, std::move(fd))));
}

void ChildReaper::forget_start() {
  if (--expected_ == 0) early_.clear();
}

void ChildReaper::watch(pid_t pid, Callback callback) {
  const auto early = early_.find(pid);
  if (early != early_.end()) {
    const int status = early->second;
    early_.erase(early);
    forget_start();
    callback(status);
    return;
  }
  watched_[pid] = std::move(callback);
  forget_start();
}

Task<void> ChildReaper::run() {
  char buffer[sizeof(signalfd_siginfo) * 4];
  for (;;) {
    // Children that ended before the signal was watched are found here, too.
    collect();
    const auto count = co_await signals_.read_some(buffer);
    if (!count) co_return;
  }
}

void ChildReaper::collect() {
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) return;
    const auto watched = watched_.find(pid);
    if (watched != watched_.end()) {
      const Callback callback = std::move(watched->second);
      watched_.erase(watched);
      callback(status);
    } else if (expected_ > 0) {
      early_[pid] = status;
    }
  }
}

}  // namespace alcove::agent
