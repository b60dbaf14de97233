// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/dial.h"

#include <array>
#include <chrono>
#include <utility>

#include <boost/asio/this_coro.hpp>

#include "net/tcp_stream.h"
#include "net/timer.h"
#include "net/tls_client_stream.h"

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
                                                       Family family,
                                                       const std::optional<std::string>& tls_name) {
  ALCOVE_CO_TRY_ASSIGN(UniqueFd fd, sandbox.connect(port, family));
  if (!tls_name) co_return co_await net::finish_connect(std::move(fd), kConnectTimeout);
  auto stream = std::make_unique<net::TlsClientStream>(co_await boost::asio::this_coro::executor,
                                                       std::move(fd));
  ALCOVE_CO_TRY(co_await stream->finish_connect(kConnectTimeout));
  if (const auto shaken = co_await stream->shake_hands(*tls_name); !shaken) {
    if (shaken.error().code() == Code::kDeadlineExceeded) co_return fail(shaken.error());
    co_return fail(Code::kFailedPrecondition, shaken.error().message());
  }
  co_return std::unique_ptr<net::Stream>(std::move(stream));
}

}  // namespace

Task<Result<std::unique_ptr<net::Stream>>> dial(node::LiveSandboxPtr sandbox, uint16_t port,
                                                DialOptions options) {
  for (size_t tried = 0;; ++tried) {
    if (!sandbox->running()) co_return fail(Code::kNotFound, "the sandbox has ended");
    for (const Family family : {Family::kV4, Family::kV6}) {
      auto stream = co_await dial_family(*sandbox, port, family, options.tls_name);
      if (stream) co_return stream;
      if (stream.error().code() == Code::kDeadlineExceeded ||
          stream.error().code() == Code::kCanceled ||
          stream.error().code() == Code::kFailedPrecondition) {
        co_return stream;
      }
    }
    if (options.patience == Patience::kNone || tried == kPauses.size()) break;
    co_await net::sleep_for(kPauses[tried]);
  }
  if (!sandbox->running()) co_return fail(Code::kNotFound, "the sandbox has ended");
  co_return fail(Code::kUnavailable, "the port is closed");
}

}  // namespace alcove::gateway
