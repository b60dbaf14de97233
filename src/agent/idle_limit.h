// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <memory>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "http/exchange.h"

namespace alcove::agent {

// Cuts a client's connection when nothing has come from it for a while. Must not outlive the
// exchange.
class IdleLimit {
 public:
  IdleLimit(const boost::asio::any_io_executor& executor, http::Exchange& exchange,
            std::chrono::steady_clock::duration limit);
  ~IdleLimit();
  IdleLimit(const IdleLimit&) = delete;
  IdleLimit& operator=(const IdleLimit&) = delete;

  // Something came.
  void touch();

 private:
  struct State;
  // Shared with the timer's handler, which may run after a cancelation.
  std::shared_ptr<State> state_;
};

}  // namespace alcove::agent
