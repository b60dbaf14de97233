// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/timer.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace alcove::net {

namespace asio = boost::asio;

Task<void> sleep_for(std::chrono::steady_clock::duration time) {
  asio::steady_timer timer(co_await asio::this_coro::executor, time);
  (void)co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
}

Task<void> yield() { co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable); }

}  // namespace alcove::net
