// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "http/body.h"
#include "http/exchange.h"
#include "net/task.h"

namespace alcove::agent {

// A request's body whose client is cut off when nothing comes from it for a while. Only the time
// that a read waits counts: what is done with the bytes may take as long as it does. Must not
// outlive the exchange.
class IdleLimitedBody final : public http::BodyReader {
 public:
  IdleLimitedBody(const boost::asio::any_io_executor& executor, http::Exchange& exchange,
                  std::chrono::steady_clock::duration limit);
  ~IdleLimitedBody() override;
  IdleLimitedBody(const IdleLimitedBody&) = delete;
  IdleLimitedBody& operator=(const IdleLimitedBody&) = delete;

  Task<Result<size_t>> read(std::span<char> buffer) override;
  std::optional<uint64_t> length() const override;

 private:
  struct State;
  // Shared with the timer's handler, which may run after a cancelation.
  std::shared_ptr<State> state_;
};

}  // namespace alcove::agent
