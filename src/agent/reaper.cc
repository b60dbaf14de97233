// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/reaper.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>
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

std::shared_ptr<ChildReaper::Start> ChildReaper::expect_start() {
  return starts_.emplace_back(std::make_shared<Start>());
}

void ChildReaper::forget_start(const std::shared_ptr<Start>& start) { std::erase(starts_, start); }

void ChildReaper::watch(const std::shared_ptr<Start>& start, Callback callback) {
  forget_start(start);
  if (start->wait_status) {
    callback(*start->wait_status);
  } else {
    watched_[start->pid] = std::move(callback);
  }
}

Task<void> ChildReaper::run() {
  char buffer[sizeof(signalfd_siginfo) * 4];
  for (;;) {
    // Children that ended before the signal was watched are found here, too.
    collect();
    // Not read_some(), which looks first and waits then: nearly always in vain.
    if (!co_await signals_.wait_readable()) co_return;
    if (const auto count = signals_.try_read(buffer); count && !*count) co_return;
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
      continue;
    }
    // Else an orphan: its pid may be given to the next start, whose end is another one.
    const auto start = std::find_if(starts_.begin(), starts_.end(),
                                    [pid](const auto& s) { return s->pid == pid; });
    if (start != starts_.end()) (*start)->wait_status = status;
  }
}

}  // namespace alcove::agent
