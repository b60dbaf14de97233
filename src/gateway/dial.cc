// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/dial.h"

#include <array>
#include <chrono>
#include <utility>

#include "net/tcp_stream.h"
#include "net/timer.h"

namespace alcove::gateway {
namespace {

using std::chrono::milliseconds;
using Family = sandbox::Machine::Family;

// Pauses between tries, as section 5 of the control plane's sheet has them.
constexpr std::array<milliseconds, 4> kPauses = {milliseconds(100), milliseconds(200),
                                                 milliseconds(300), milliseconds(400)};

// A connection within one machine is there at once, or the service's queue is full.
constexpr milliseconds kConnectTimeout{5000};

Task<Result<std::unique_ptr<net::Stream>>> dial_family(node::LiveSandbox& sandbox, uint16_t port,
                                                       Family family) {
  ALCOVE_CO_TRY_ASSIGN(UniqueFd fd, sandbox.connect(port, family));
  co_return co_await net::finish_connect(std::move(fd), kConnectTimeout);
}

}  // namespace

Task<Result<std::unique_ptr<net::Stream>>> dial(node::LiveSandboxPtr sandbox, uint16_t port,
                                                Patience patience) {
  for (size_t tried = 0;; ++tried) {
    if (!sandbox->running()) co_return fail(Code::kNotFound, "the sandbox has ended");
    for (const Family family : {Family::kV4, Family::kV6}) {
      auto stream = co_await dial_family(*sandbox, port, family);
      if (stream) co_return stream;
      if (stream.error().code() == Code::kDeadlineExceeded ||
          stream.error().code() == Code::kCanceled) {
        co_return stream;
      }
    }
    if (patience == Patience::kNone || tried == kPauses.size()) break;
    co_await net::sleep_for(kPauses[tried]);
  }
  if (!sandbox->running()) co_return fail(Code::kNotFound, "the sandbox has ended");
  co_return fail(Code::kUnavailable, "the port is closed");
}

}  // namespace alcove::gateway
