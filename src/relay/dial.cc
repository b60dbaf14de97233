// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "relay/dial.h"

#include <sys/socket.h>

#include <cerrno>
#include <chrono>

namespace alcove::relay {
namespace {

using network::DialMark;

// As long as a program's own kernel goes on asking.
constexpr std::chrono::seconds kPatience{130};
// The next name server is asked sooner.
constexpr std::chrono::seconds kNameServerPatience{3};

DialOutcome refused(int error_number) {
  switch (error_number) {
    case ECONNREFUSED:
    case ECONNRESET:
      return {nullptr, DialMark::kRefused};
    case ETIMEDOUT:
    case ECANCELED:
      return {nullptr, DialMark::kNone};
    default:
      return {nullptr, DialMark::kUnreachable};
  }
}

Task<DialOutcome> dial_one(Services& services, network::Endpoint target,
                           std::chrono::seconds patience, DialControl& control) {
  UniqueFd fd(::socket(target.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) co_return refused(errno);
  sockaddr_storage address;
  const socklen_t length = target.to_sockaddr(address);
  const int status = ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), length);
  if (status != 0 && errno != EINPROGRESS) co_return refused(errno);
  auto socket = std::make_shared<net::FdWait>(services.executor, std::move(fd));
  if (status == 0) co_return DialOutcome{std::move(socket), DialMark::kNone};
  control.under_way = socket;
  const auto connected =
      co_await socket->wait_connected(std::chrono::steady_clock::now() + patience);
  control.under_way.reset();
  if (connected) co_return DialOutcome{std::move(socket), DialMark::kNone};
  const Error& error = connected.error();
  if (error.code() == Code::kDeadlineExceeded) co_return refused(ETIMEDOUT);
  co_return refused(error.code() == Code::kCanceled ? ECANCELED : error.error_number());
}

}  // namespace

Task<DialOutcome> dial(Services& services, Passage passage, std::shared_ptr<DialControl> control) {
  DialOutcome outcome{nullptr, passage.refusal};
  for (const network::Endpoint& target : passage.targets) {
    outcome = co_await dial_one(services, target,
                                passage.name_server ? kNameServerPatience : kPatience, *control);
    if (outcome.socket || control->canceled) break;
  }
  if (control->canceled) co_return DialOutcome{};
  co_return outcome;
}

}  // namespace alcove::relay
