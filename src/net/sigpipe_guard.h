// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <signal.h>

namespace alcove::net {

// Keeps a write of this thread to a closed pipe or socket from raising SIGPIPE, where no
// MSG_NOSIGNAL exists (write, sendfile). EPIPE is still returned.
class SigpipeGuard {
 public:
  SigpipeGuard();
  ~SigpipeGuard();
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;

  // Says that the call failed with EPIPE: a signal is pending and is taken back.
  void broken() { broken_ = true; }

 private:
  sigset_t before_;
  bool was_pending_ = false;
  bool broken_ = false;
};

}  // namespace alcove::net
