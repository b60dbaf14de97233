// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/idle_limit.h"

namespace alcove::agent {

using SteadyClock = std::chrono::steady_clock;

// The timer is not moved when something comes: when it fires too early it is set again.
struct IdleLimit::State : std::enable_shared_from_this<State> {
  State(const boost::asio::any_io_executor& executor, http::Exchange& used,
        SteadyClock::duration time)
      : timer(executor), exchange(&used), limit(time), last(SteadyClock::now()) {}

  void arm() {
    timer.expires_at(last + limit);
    timer.async_wait([self = shared_from_this()](boost::system::error_code error) {
      if (error || self->exchange == nullptr) return;
      if (SteadyClock::now() < self->last + self->limit) {
        self->arm();
      } else {
        self->exchange->abort();
      }
    });
  }

  boost::asio::steady_timer timer;
  http::Exchange* exchange;
  SteadyClock::duration limit;
  SteadyClock::time_point last;
};

IdleLimit::IdleLimit(const boost::asio::any_io_executor& executor, http::Exchange& exchange,
                     SteadyClock::duration limit)
    : state_(std::make_shared<State>(executor, exchange, limit)) {
  state_->arm();
}

IdleLimit::~IdleLimit() {
  state_->exchange = nullptr;
  state_->timer.cancel();
}

void IdleLimit::touch() { state_->last = SteadyClock::now(); }

}  // namespace alcove::agent
