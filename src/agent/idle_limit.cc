// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/idle_limit.h"

namespace alcove::agent {

using SteadyClock = std::chrono::steady_clock;

// The timer is not moved with every read: when it fires too early it is set again.
struct IdleLimitedBody::State : std::enable_shared_from_this<State> {
  State(const boost::asio::any_io_executor& executor, http::Exchange& used,
        SteadyClock::duration time)
      : timer(executor), exchange(&used), limit(time) {}

  void arm() {
    timer.expires_at(waiting_since.value_or(SteadyClock::now()) + limit);
    timer.async_wait([self = shared_from_this()](boost::system::error_code error) {
      if (error || self->exchange == nullptr) return;
      if (self->waiting_since && SteadyClock::now() >= *self->waiting_since + self->limit) {
        self->exchange->abort();
      } else {
        self->arm();
      }
    });
  }

  boost::asio::steady_timer timer;
  http::Exchange* exchange;
  SteadyClock::duration limit;
  // Since when a read has waited for the client.
  std::optional<SteadyClock::time_point> waiting_since;
};

IdleLimitedBody::IdleLimitedBody(const boost::asio::any_io_executor& executor,
                                 http::Exchange& exchange, SteadyClock::duration limit)
    : state_(std::make_shared<State>(executor, exchange, limit)) {
  state_->arm();
}

IdleLimitedBody::~IdleLimitedBody() {
  state_->exchange = nullptr;
  state_->timer.cancel();
}

Task<Result<size_t>> IdleLimitedBody::read(std::span<char> buffer) {
  state_->waiting_since = SteadyClock::now();
  auto count = co_await state_->exchange->body().read(buffer);
  state_->waiting_since.reset();
  co_return count;
}

std::optional<uint64_t> IdleLimitedBody::length() const {
  return state_->exchange->body().length();
}

}  // namespace alcove::agent
