// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "http/server_exchange.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/strings.h"
#include "http/file_sender.h"
#include "http/head_writer.h"
#include "net/timer.h"

namespace alcove::http {
namespace {

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr std::string_view kLastChunk = "0\r\n\r\n";
constexpr std::chrono::seconds kDrainTime{5};
// A client that pipelines more than this is looked at once a second instead of being read.
constexpr size_t kMostReadAhead = 64 * 1024;
constexpr std::chrono::seconds kHangUpPoll{1};

}  // namespace

ServerExchange::ServerExchange(std::shared_ptr<ConnectionIo> io, RequestHead head, Framing framing)
    : io_(std::move(io)),
      head_(std::move(head)),
      body_(*io_->stream, io_->buffer, framing),
      body_idle_(io_->options.body_read_timeout),
      is_head_request_(head_.method == "HEAD"),
      expects_continue_(head_.version_minor >= 1 && !body_.complete() &&
                        head_.headers.has_token("Expect", "100-continue")),
      keep_alive_(wants_keep_alive(head_.headers, head_.version_minor)) {
  ++io_->request_number;
}

ServerExchange::~ServerExchange() = default;

void ServerExchange::limit_body_time(std::chrono::steady_clock::duration idle,
                                     std::chrono::steady_clock::duration total) {
  body_idle_ = idle;
  body_end_ = std::chrono::steady_clock::now() + total;
}

Task<Result<size_t>> ServerExchange::read(std::span<char> buffer) {
  if (expects_continue_ && !body_.complete()) {
    expects_continue_ = false;
    // Not needed by a client that did not wait, and not allowed after the answer has begun.
    if (io_->buffer.empty() && !started_) {
      const std::string_view pieces[] = {kContinue};
      ALCOVE_CO_TRY(co_await io_->write(pieces));
    }
  }
  if (body_idle_.count() == 0 && !body_end_) co_return co_await body_.read(buffer);
  auto deadline = body_end_.value_or(std::chrono::steady_clock::time_point::max());
  if (body_idle_.count() > 0) {
    deadline = std::min(deadline, std::chrono::steady_clock::now() + body_idle_);
  }
  io_->stream->set_read_deadline(deadline);
  auto count = co_await body_.read(buffer);
  // It is the body's: wait_disconnect() may take as long as the handler does.
  io_->stream->set_read_deadline(std::nullopt);
  co_return count;
}

bool ServerExchange::client_is_done() const {
  if (wants_keep_alive(head_.headers, head_.version_minor)) return false;
  if (!body_.complete() || !io_->buffer.empty()) return false;
  char byte = 0;
  const int fd = io_->stream->native_fd();
  return fd >= 0 && ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

bool ServerExchange::can_keep_alive() const {
  if (io_->closing || io_->peer_gone) return false;
  if (body_.is_received()) return true;
  // Whether a client that still waits for 100-continue will send its body is not known.
  if (expects_continue_) return false;
  return body_.kind() == Framing::Kind::kLength && body_.not_received() <= io_->options.drain_limit;
}

Result<void> ServerExchange::prepare_head(const ResponseHead& head, BodyLength length,
                                          std::string& out) {
  if (started_) return fail(Code::kInternal, "the answer has already begun");
  if (head.status < 100 || head.status > 999) return fail(Code::kInternal, "not an HTTP status");
  tunnel_ = head.status == 101;
  const bool no_body = status_has_no_body(head.status);
  if (no_body || is_head_request_) {
    mode_ = BodyMode::kNone;
  } else if (length) {
    mode_ = BodyMode::kLength;
    length_left_ = *length;
  } else {
    mode_ = head_.version_minor >= 1 ? BodyMode::kChunked : BodyMode::kUntilClose;
  }
  if (mode_ == BodyMode::kUntilClose || head.headers.has_token("Connection", "close")) {
    keep_alive_ = false;
  }
  keep_alive_ = keep_alive_ && (tunnel_ || can_keep_alive());

  append_status_line(out, head.status);
  // "Connection" is ours, except that it must announce the Upgrade of 101 and 426.
  const bool upgrades = tunnel_ || head.status == 426;
  ALCOVE_TRY(append_fields(out, head.headers, upgrades ? "" : "Connection"));
  if (!no_body) {
    if (length) {
      out += cat("Content-Length: ", *length, "\r\n");
    } else if (head_.version_minor >= 1) {
      out += "Transfer-Encoding: chunked\r\n";
    }
  }
  if (!keep_alive_) {
    out += "Connection: close\r\n";
  } else if (head_.version_minor == 0) {
    out += "Connection: keep-alive\r\n";
  }
  out += "\r\n";
  return {};
}

Task<Result<void>> ServerExchange::send(std::span<const std::string_view> pieces) {
  if (failed_) co_return fail(Code::kUnavailable, "the connection is broken");
  auto sent = co_await io_->write(pieces);
  if (!sent) failed_ = true;
  co_return sent;
}

Task<Result<void>> ServerExchange::respond(Response response) {
  std::string head;
  ResponseHead response_head{.status = response.status, .headers = std::move(response.headers)};
  ALCOVE_CO_TRY(prepare_head(response_head, response.body.size(), head));
  started_ = true;
  finished_ = true;
  const std::string_view pieces[] = {
      head, mode_ == BodyMode::kNone ? std::string_view{} : std::string_view(response.body)};
  co_return co_await send(pieces);
}

Task<Result<void>> ServerExchange::start(ResponseHead head, BodyLength length) {
  return start_with(std::move(head), length, {});
}

Task<Result<void>> ServerExchange::start_with(ResponseHead head, BodyLength length,
                                              std::string_view first) {
  std::string text;
  ALCOVE_CO_TRY(prepare_head(head, length, text));
  started_ = true;
  std::string_view end;
  if (mode_ == BodyMode::kNone) first = {};
  if (mode_ == BodyMode::kLength) ALCOVE_CO_TRY(take_length(first.size()));
  if (mode_ == BodyMode::kChunked && !first.empty()) {
    append_chunk_size(text, first.size());
    end = "\r\n";
  }
  const std::string_view pieces[] = {text, first, end};
  co_return co_await send(pieces);
}

Result<void> ServerExchange::take_length(uint64_t count) {
  if (count > length_left_) {
    abort();
    return fail(Code::kInternal, "more body than the announced Content-Length");
  }
  length_left_ -= count;
  return {};
}

Task<Result<void>> ServerExchange::write(std::string_view data) {
  if (!started_ || finished_) co_return fail(Code::kInternal, "no answer is under way");
  if (mode_ == BodyMode::kNone || data.empty()) co_return Result<void>();
  if (mode_ == BodyMode::kLength) ALCOVE_CO_TRY(take_length(data.size()));
  if (mode_ != BodyMode::kChunked) {
    const std::string_view pieces[] = {data};
    co_return co_await send(pieces);
  }
  std::string size;
  append_chunk_size(size, data.size());
  const std::string_view pieces[] = {size, data, "\r\n"};
  co_return co_await send(pieces);
}

Task<Result<void>> ServerExchange::finish(std::string_view last) {
  if (!started_ || finished_) co_return fail(Code::kInternal, "no answer is under way");
  if (mode_ != BodyMode::kChunked) {
    ALCOVE_CO_TRY(co_await write(last));
    finished_ = true;
    if (length_left_ > 0) {
      abort();
      co_return fail(Code::kInternal, "less body than the announced Content-Length");
    }
    co_return Result<void>();
  }
  finished_ = true;
  std::string size;
  if (!last.empty()) append_chunk_size(size, last.size());
  const std::string_view pieces[] = {size, last, last.empty() ? "" : "\r\n", kLastChunk};
  co_return co_await send(pieces);
}

Task<Result<void>> ServerExchange::send_file(int fd, uint64_t offset, uint64_t count) {
  if (!started_ || finished_) co_return fail(Code::kInternal, "no answer is under way");
  if (mode_ == BodyMode::kNone) co_return Result<void>();
  if (mode_ == BodyMode::kChunked) co_return fail(Code::kInternal, "send_file needs a length");
  if (mode_ == BodyMode::kLength) ALCOVE_CO_TRY(take_length(count));
  if (failed_) co_return fail(Code::kUnavailable, "the connection is broken");
  auto sent = co_await http::send_file(*io_, fd, offset, count);
  // Part of the announced body is missing: the client must not take it for a whole one.
  if (!sent) abort();
  co_return sent;
}

void ServerExchange::abort() {
  failed_ = true;
  io_->stream->abort();
}

net::Stream& ServerExchange::raw_stream() {
  tunnel_ = true;
  return *io_->stream;
}

std::string ServerExchange::take_read_ahead() { return io_->buffer.take(); }

Task<void> ServerExchange::wait_disconnect() {
  const auto io = io_;
  const uint64_t request = io->request_number;
  const auto over = [io, request] { return io->peer_gone || io->request_number != request; };
  while (!over()) {
    if (io->watching) {
      co_await io->watch_changed.wait();
      continue;
    }
    // Ends the watch also when the task is canceled.
    struct Watch {
      explicit Watch(ConnectionIo& used) : io(used) { io.watching = true; }
      ~Watch() {
        io.watching = false;
        io.watch_changed.notify_all();
      }
      ConnectionIo& io;
    };
    const Watch watch(*io);
    if (io->buffer.size() >= kMostReadAhead) {
      co_await net::sleep_for(kHangUpPoll);
      if (io->stream->is_hung_up()) io->peer_gone = true;
      continue;
    }
    if (const auto ready = co_await io->stream->wait_readable(); !ready) {
      // A canceled wait is the end of the request or of the task, not of the peer.
      if (ready.error().code() == Code::kCanceled) co_return;
      io->peer_gone = true;
      co_return;
    }
    if (over()) co_return;
    // May wait again: the kernel's word that there is something to read can be an old one.
    const auto count = co_await io->stream->read_some(io->buffer.prepare());
    if (!count && count.error().code() == Code::kCanceled) co_return;
    if (!count || *count == 0) {
      io->peer_gone = true;
    } else {
      io->buffer.commit(*count);
    }
  }
}

Task<void> ServerExchange::end_watch() {
  ++io_->request_number;
  io_->watch_changed.notify_all();
  while (io_->watching) {
    io_->stream->cancel_read();
    co_await net::yield();
  }
}

Task<bool> ServerExchange::drain_body() {
  // Not earlier: a handler may read the body while it answers.
  body_.discard_received();
  io_->stream->set_read_deadline(std::chrono::steady_clock::now() + kDrainTime);
  std::array<char, 4096> unused;
  uint64_t drained = 0;
  while (!body_.complete()) {
    const auto count = co_await body_.read(unused);
    if (!count) co_return false;
    drained += *count;
    if (drained > io_->options.drain_limit) co_return false;
  }
  co_return true;
}

Task<ServerExchange::After> ServerExchange::conclude() {
  co_await end_watch();
  if (tunnel_) co_return After::kDrop;
  if (!started_ && !failed_) {
    Response response{.status = 500,
                      .headers = {{"Content-Type", "application/json"}},
                      .body = error_body(500, "Internal Server Error")};
    (void)co_await respond(std::move(response));
  }
  const bool whole =
      finished_ || mode_ == BodyMode::kNone || (mode_ == BodyMode::kLength && length_left_ == 0);
  if (!whole && !failed_) abort();
  if (failed_) co_return After::kDrop;
  if (!keep_alive_) co_return client_is_done() ? After::kDrop : After::kClose;
  co_return co_await drain_body() ? After::kNextRequest : After::kClose;
}

}  // namespace alcove::http
