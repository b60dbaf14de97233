// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/this_coro.hpp>

#include "gateway/flow.h"

// The part of Flow that carries a connection whose protocol was switched (WebSocket and others).

namespace alcove::gateway {

namespace asio = boost::asio;

Task<void> Flow::tunnel(http::ResponseHead head) {
  // The watcher gives way: what the client sends now is data.
  co_await stop_sides();
  if (auto cleaned = clean_answer(head); !cleaned) {
    co_return co_await answer_failure(std::move(cleaned).error());
  }
  tunneling_ = true;
  answering_ = true;
  if (!co_await exchange_.start(std::move(head), /*length=*/0)) co_return cut();

  net::Stream& client = exchange_.raw_stream();
  net::Stream& service = upstream_->stream();
  const std::string from_service = upstream_->take_read_ahead();
  if (!from_service.empty() && !co_await client.write(from_service)) co_return cut();
  const std::string from_client = exchange_.take_read_ahead();
  if (!from_client.empty() && !co_await service.write(from_client)) co_return cut();

  side_.start(copy(client, service));
  co_await copy(service, client);
  // The client may have more to say after the service has said all.
  co_await side_.join();
}

Task<void> Flow::copy(net::Stream& from, net::Stream& to) {
  co_await asio::this_coro::throw_if_cancelled(false);
  BodyBuffer buffer(loop_->buffers, loop_->silence);
  for (;;) {
    buffer.begin_read([&from] { from.cancel_read(); });
    auto read = co_await from.read_some(buffer.span());
    if (buffer.end_read(read) && !co_await is_canceled()) {
      read = co_await from.read_some(buffer.span());
    }
    // Processes that are killed with their sandbox seem to close in good order.
    if (!read || (*read == 0 && !traffic_->running())) co_return cut();
    if (*read == 0) {
      // The other direction goes on as long as something comes: who closed its socket instead of
      // saying that it has said all looks the same.
      half_closed_ = true;
      to.set_read_deadline(std::chrono::steady_clock::now() + loop_->tunnel_linger);
      co_return to.shutdown_write();
    }
    const bool to_service = &to == &upstream_->stream();
    if (to_service) loop_->patrol->add(*this);
    const auto sent = co_await to.write({buffer.span().data(), *read});
    if (to_service) Patrol::remove(*this);
    if (!sent) co_return cut();
    if (to_service && write_limited_) {
      to.set_write_deadline(std::nullopt);
      write_limited_ = false;
    }
    if (half_closed_) {
      from.set_read_deadline(std::chrono::steady_clock::now() + loop_->tunnel_linger);
    }
    buffer.adapt(*read);
  }
}

// The service takes nothing, so nobody reads from the client: one that is gone would not be missed
// as long as the service is silent, too.
void Flow::tunnel_stuck() {
  if (!exchange_.client_hung_up()) return loop_->patrol->add(*this);
  write_limited_ = true;
  upstream_->stream().set_write_deadline(std::chrono::steady_clock::now() + loop_->tunnel_linger);
}

}  // namespace alcove::gateway
