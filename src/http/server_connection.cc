// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "http/server_connection.h"

#include <array>
#include <exception>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "http/head_writer.h"
#include "http/server_exchange.h"
#include "http/wire_parser.h"

namespace alcove::http {
namespace {

constexpr std::chrono::seconds kLingerTime{2};
// A client that sends all of a refused body before it reads must still find the refusal.
constexpr uint64_t kMostLingering = 64 * 1024 * 1024;

std::chrono::steady_clock::time_point from_now(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

}  // namespace

ServerConnection::ServerConnection(const boost::asio::any_io_executor& executor,
                                   std::unique_ptr<net::Stream> stream,
                                   std::shared_ptr<const Handler> handler,
                                   const ServerOptions& options)
    : io_(std::make_shared<ConnectionIo>(executor, std::move(stream), options)),
      handler_(std::move(handler)) {}

void ServerConnection::close_when_idle() {
  io_->closing = true;
  if (idle_) io_->stream->cancel_read();
}

Task<void> ServerConnection::run() {
  while (co_await serve_next()) {
  }
  io_->stream->close();
}

Task<bool> ServerConnection::wait_for_request() {
  for (;;) {
    const bool last_chance = io_->closing;
    const std::chrono::milliseconds limit =
        last_chance ? Server::kLastChance : io_->options.idle_timeout;
    io_->stream->set_read_deadline(from_now(limit));
    idle_ = true;
    const auto ready = co_await io_->stream->wait_readable();
    idle_ = false;
    if (ready) co_return true;
    if (last_chance || !io_->closing) co_return false;
  }
}

Task<bool> ServerConnection::serve_next() {
  if (io_->buffer.empty()) {
    if (io_->peer_gone) co_return false;
    io_->buffer.release();
    if (!co_await wait_for_request()) co_return false;
  }
  auto head = co_await read_head();
  if (!head) co_return false;
  co_return co_await handle(std::move(*head));
}

Task<std::optional<ServerConnection::Head>> ServerConnection::read_head() {
  Head head;
  HeadScan scan;
  bool waited = false;
  for (;;) {
    const HeadParse parse =
        parse_request_head(io_->buffer.data(), io_->options.header_limit, scan, head.request);
    if (parse.status == HeadParse::Status::kDone) {
      io_->buffer.consume(parse.size);
      break;
    }
    if (parse.status == HeadParse::Status::kTooLarge) {
      co_await refuse(431, "the request head is too large");
      co_return std::nullopt;
    }
    if (parse.status == HeadParse::Status::kInvalid) {
      co_await refuse(400, parse.problem);
      co_return std::nullopt;
    }
    // It has begun, even if nothing of it can be read yet (TLS).
    if (!waited) {
      io_->stream->set_read_deadline(from_now(io_->options.header_timeout));
      waited = true;
    }
    const auto count = co_await io_->stream->read_some(io_->buffer.prepare());
    if (!count && count.error().code() == Code::kDeadlineExceeded && waited) {
      co_await refuse(408, "the request head did not arrive in time");
    }
    if (!count || *count == 0) co_return std::nullopt;
    io_->buffer.commit(*count);
  }
  auto framing = check_request(head.request);
  if (!framing) {
    co_await refuse(400, framing.error().message());
    co_return std::nullopt;
  }
  head.framing = *framing;
  co_return head;
}

Task<bool> ServerConnection::handle(Head head) {
  io_->stream->set_read_deadline(std::nullopt);
  ServerExchange exchange(io_, std::move(head.request), head.framing);
  std::string failure;
  try {
    co_await (*handler_)(exchange);
  } catch (const std::exception& error) {
    failure = error.what();
  } catch (...) {
    failure = "unknown exception";
  }
  if (!failure.empty()) {
    log_error(cat("handler of ", exchange.request().method, ' ', exchange.request().path(),
                  " failed: ", failure));
  }
  switch (co_await exchange.conclude()) {
    case ServerExchange::After::kNextRequest:
      co_return true;
    case ServerExchange::After::kClose:
      co_await close_gently();
      co_return false;
    case ServerExchange::After::kDrop:
      break;
  }
  co_return false;
}

Task<void> ServerConnection::refuse(int status, std::string_view message) {
  std::string head;
  append_status_line(head, status);
  const std::string body = error_body(status, message);
  head += cat("Content-Type: application/json\r\nContent-Length: ", body.size(),
              "\r\nConnection: close\r\n\r\n");
  const std::string_view pieces[] = {head, body};
  io_->stream->set_write_deadline(from_now(kLingerTime));
  if (co_await io_->stream->write(pieces)) co_await close_gently();
}

Task<void> ServerConnection::close_gently() {
  io_->stream->shutdown_write();
  io_->stream->set_read_deadline(from_now(kLingerTime));
  std::array<char, 4096> unused;
  for (uint64_t total = 0; total < kMostLingering;) {
    const auto count = co_await io_->stream->read_some(unused);
    if (!count || *count == 0) break;
    total += *count;
  }
}

}  // namespace alcove::http
