// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/dial.h"

#include <array>
#include <cerrno>
#include <utility>

#include <boost/asio/this_coro.hpp>

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

// What an error leads to that is not a closed port.
Trouble trouble_of(const Error& error) {
  switch (error.code()) {
    case Code::kNotFound:
      return Trouble::kSandboxNotFound;
    case Code::kDeadlineExceeded:
      return Trouble::kTooSlow;
    case Code::kFailedPrecondition:
      return Trouble::kNoTls;
    case Code::kCanceled:
      return Trouble::kNoAnswer;
    default:
      return Trouble::kNoConnection;
  }
}

DialError why_full(WaitingRequests::Full full) {
  return {full == WaitingRequests::Full::kSandbox ? Trouble::kTooManyWaiting
                                                  : Trouble::kTooManyWaitingInAll,
          "too many requests wait for services"};
}

}  // namespace

Dial::Dial(node::LiveSandboxPtr sandbox, uint16_t port, DialOptions options)
    : sandbox_(std::move(sandbox)), port_(port), options_(std::move(options)) {}

void Dial::break_off() {
  broken_off_ = true;
  if (connecting_ != nullptr) connecting_->close();
  if (pause_) pause_->notify_all();
}

DialError Dial::why_over() const {
  if (!sandbox_->running()) return {Trouble::kSandboxNotFound, "the sandbox has ended"};
  return {Trouble::kNoAnswer, "broken off"};
}

Task<DialResult> Dial::run() {
  std::optional<WaitingRequests::Place> place;
  for (size_t tried = 0; !is_over(); ++tried) {
    if (auto result = co_await try_families()) co_return *std::move(result);
    if (options_.patience == Patience::kNone || tried == kPauses.size()) {
      if (is_over()) break;
      co_return tl::unexpected(DialError{Trouble::kPortClosed, "the port is closed"});
    }
    if (!place && options_.waiting != nullptr) {
      auto entered = options_.waiting->enter(sandbox_->record().id);
      if (!entered) co_return tl::unexpected(why_full(entered.error()));
      place.emplace(*std::move(entered));
    }
    co_await pause(kPauses[tried]);
  }
  co_return tl::unexpected(why_over());
}

Task<void> Dial::pause(milliseconds time) {
  if (!pause_) pause_.emplace(co_await boost::asio::this_coro::executor);
  (void)co_await pause_->wait_until(std::chrono::steady_clock::now() + time);
}

Task<std::optional<DialResult>> Dial::try_families() {
  for (const Family family : {Family::kV4, Family::kV6}) {
    auto stream = co_await try_family(family);
    if (stream) co_return DialResult(*std::move(stream));
    if (is_over()) co_return DialResult(tl::unexpected(why_over()));
    const Error& error = stream.error();
    if (!is_closed(error, family)) {
      co_return DialResult(tl::unexpected(DialError{trouble_of(error), error.message()}));
    }
  }
  co_return std::nullopt;
}

Task<Result<std::unique_ptr<net::Stream>>> Dial::try_family(Family family) {
  ALCOVE_CO_TRY_ASSIGN(UniqueFd fd, sandbox_->connect(port_, family));
  if (fd.get() >= options_.descriptor_limit) {
    co_return fail(Code::kResourceExhausted, "nearly all file descriptors are used");
  }
  const auto executor = co_await boost::asio::this_coro::executor;
  std::unique_ptr<net::TcpStream> stream;
  if (options_.tls_name) {
    stream = std::make_unique<net::TlsClientStream>(executor, std::move(fd));
  } else {
    stream = std::make_unique<net::TcpStream>(executor, std::move(fd));
  }
  connecting_ = stream.get();
  const auto connected = co_await try_stream(*stream);
  connecting_ = nullptr;
  ALCOVE_CO_TRY(connected);
  co_return std::unique_ptr<net::Stream>(std::move(stream));
}

Task<Result<void>> Dial::try_stream(net::TcpStream& stream) {
  ALCOVE_CO_TRY(co_await stream.finish_connect(kConnectTimeout));
  if (!options_.tls_name) co_return Result<void>();
  auto& tls = static_cast<net::TlsClientStream&>(stream);
  const auto shaken = co_await tls.shake_hands(*options_.tls_name);
  if (shaken || shaken.error().code() == Code::kDeadlineExceeded ||
      shaken.error().code() == Code::kResourceExhausted) {
    co_return shaken;
  }
  co_return fail(Code::kFailedPrecondition, shaken.error().message());
}

}  // namespace alcove::gateway
