// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/dial.h"

#include <array>
#include <cerrno>
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

// Nobody listens, or the sandbox itself sees to it that nobody gets there: its network namespace
// and the rules in it are its own. Everything else is this machine's lack of something.
bool is_closed(const Error& error, Family family) {
  switch (error.error_number()) {
    case ECONNREFUSED:
    case ECONNRESET:
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EACCES:
    case EPERM:
      return true;
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
      // There is no ::1. By IPv4 the local ports are used up.
      return family == Family::kV6;
    default:
      return false;
  }
}

// What the service or the sandbox's end led to.
bool is_of_sandbox(const Error& error) {
  return error.code() == Code::kDeadlineExceeded || error.code() == Code::kCanceled ||
         error.code() == Code::kFailedPrecondition || error.code() == Code::kNotFound;
}

Task<Result<std::unique_ptr<net::Stream>>> dial_family(node::LiveSandbox& sandbox, uint16_t port,
                                                       Family family,
                                                       const std::optional<std::string>& tls_name) {
  ALCOVE_CO_TRY_ASSIGN(UniqueFd fd, sandbox.connect(port, family));
  if (!tls_name) co_return co_await net::finish_connect(std::move(fd), kConnectTimeout);
  auto stream = std::make_unique<net::TlsClientStream>(co_await boost::asio::this_coro::executor,
                                                       std::move(fd));
  ALCOVE_CO_TRY(co_await stream->finish_connect(kConnectTimeout));
  if (const auto shaken = co_await stream->shake_hands(*tls_name); !shaken) {
    if (shaken.error().code() == Code::kDeadlineExceeded ||
        shaken.error().code() == Code::kResourceExhausted) {
      co_return fail(shaken.error());
    }
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
      if (is_closed(stream.error(), family)) continue;
      if (is_of_sandbox(stream.error())) co_return stream;
      co_return fail(Code::kResourceExhausted, stream.error().message());
    }
    if (options.patience == Patience::kNone || tried == kPauses.size()) break;
    co_await net::sleep_for(kPauses[tried]);
  }
  if (!sandbox->running()) co_return fail(Code::kNotFound, "the sandbox has ended");
  co_return fail(Code::kUnavailable, "the port is closed");
}

}  // namespace alcove::gateway
