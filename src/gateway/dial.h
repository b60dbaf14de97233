// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include <tl/expected.hpp>

#include "base/result.h"
#include "gateway/error_page.h"
#include "gateway/waiting_requests.h"
#include "net/notifier.h"
#include "net/stream.h"
#include "net/task.h"
#include "net/tcp_stream.h"
#include "node/node.h"

namespace alcove::gateway {

// Whether a closed port may be about to open: then it is tried five times within a second.
enum class Patience { kNone, kStarting };

struct DialOptions {
  Patience patience = Patience::kNone;
  // TLS with the service, which is asked for by this name (may be empty). Its certificate is not
  // checked: nobody but the sandbox is at the other end of the connection.
  std::optional<std::string> tls_name;
  // Where those who are patient are counted; nullptr: nobody counts.
  WaitingRequests* waiting = nullptr;
  // A descriptor of this number or a higher one means that nearly all are used: what is left is
  // not for connections into sandboxes.
  int descriptor_limit = std::numeric_limits<int>::max();
};

struct DialError {
  Trouble trouble;
  // For the log.
  std::string detail;
};
using DialResult = tl::expected<std::unique_ptr<net::Stream>, DialError>;

// Connects to a port inside a sandbox: 127.0.0.1 first, then ::1. Used on one loop.
class Dial {
 public:
  Dial(node::LiveSandboxPtr sandbox, uint16_t port, DialOptions options);
  Dial(const Dial&) = delete;
  Dial& operator=(const Dial&) = delete;

  // May be run again after it has failed.
  Task<DialResult> run();
  // Ends run() at once, with some error. Called by another task of the loop.
  void break_off();

 private:
  // Nothing if nobody listens.
  Task<std::optional<DialResult>> try_families();
  Task<Result<std::unique_ptr<net::Stream>>> try_family(sandbox::Machine::Family family);
  Task<Result<void>> try_stream(net::TcpStream& stream);
  Task<void> pause(std::chrono::milliseconds time);
  bool is_over() const { return broken_off_ || !sandbox_->running(); }
  DialError why_over() const;

  const node::LiveSandboxPtr sandbox_;
  const uint16_t port_;
  const DialOptions options_;
  bool broken_off_ = false;
  // What run() waits for now, if it waits.
  net::Stream* connecting_ = nullptr;
  std::optional<net::Notifier> pause_;
};

}  // namespace alcove::gateway
