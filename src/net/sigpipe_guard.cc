// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/sigpipe_guard.h"

#include <time.h>

namespace alcove::net {
namespace {

sigset_t only_sigpipe() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  return set;
}

}  // namespace

SigpipeGuard::SigpipeGuard() {
  const sigset_t set = only_sigpipe();
  pthread_sigmask(SIG_BLOCK, &set, &before_);
  if (sigismember(&before_, SIGPIPE) == 1) {
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
  }
}

SigpipeGuard::~SigpipeGuard() {
  if (broken_ && !was_pending_) {
    const sigset_t set = only_sigpipe();
    const timespec no_wait{};
    sigtimedwait(&set, nullptr, &no_wait);
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace alcove::net
