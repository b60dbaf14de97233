// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/tls_session.h"

#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/this_coro.hpp>

#include "net/openssl_error.h"
#include "net/timer.h"

namespace alcove::net {
namespace {

using Direction = FdWait::Direction;

constexpr size_t kRecord = 16 * 1024;

// What a peer makes us say while we read; one that never reads gets no more.
constexpr size_t kMostUnsent = 16 * 1024;
// How often a write looks for the rest of a message that the peer has begun.
constexpr std::chrono::milliseconds kPeerPoll{10};

ssize_t send_some(FdWait& fd, const char* data, size_t size) {
  ssize_t count;
  do {
    count = ::send(fd.fd(), data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);
  return count;
}

// OpenSSL's own socket BIO writes without MSG_NOSIGNAL and keeps a descriptor that may be closed.
int bio_write(BIO* bio, const char* data, int size) {
  auto* transport = static_cast<TlsSession::Transport*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  std::string& unsent = transport->unsent;
  ssize_t count = 0;
  while (!unsent.empty() && count >= 0) {
    count = send_some(*transport->fd, unsent.data(), unsent.size());
    if (count > 0) unsent.erase(0, static_cast<size_t>(count));
  }
  if (count >= 0) count = send_some(*transport->fd, data, static_cast<size_t>(size));
  if (count >= 0 || errno != EAGAIN) return static_cast<int>(count);
  if (transport->reading && unsent.size() + static_cast<size_t>(size) <= kMostUnsent) {
    unsent.append(data, static_cast<size_t>(size));
    return size;
  }
  BIO_set_retry_write(bio);
  return -1;
}

int bio_read(BIO* bio, char* data, int size) {
  auto* transport = static_cast<TlsSession::Transport*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  ssize_t count;
  do {
    count = ::recv(transport->fd->fd(), data, static_cast<size_t>(size), MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);
  if (count < 0 && errno == EAGAIN) BIO_set_retry_read(bio);
  if (count == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(count);
}

long bio_control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return 0;
}

const BIO_METHOD* bio_method() {
  static const BIO_METHOD* method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "alcove");
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_ctrl(made, bio_control);
    return made;
  }();
  return method;
}

}  // namespace

TlsSession::~TlsSession() { SSL_free(ssl_); }

void TlsSession::set_deadline(Direction direction, std::optional<TimePoint> deadline) {
  (direction == Direction::kRead ? read_deadline_ : write_deadline_) = deadline;
  fd_->set_deadline(direction, deadline);
}

Result<void> TlsSession::open(SSL_CTX* context) {
  BIO* bio = BIO_new(bio_method());
  ssl_ = SSL_new(context);
  if (bio == nullptr || ssl_ == nullptr) {
    BIO_free(bio);
    failed_ = true;
    return fail(openssl_error(Code::kResourceExhausted, "TLS"));
  }
  BIO_set_data(bio, &transport_);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);
  return {};
}

Task<Result<void>> TlsSession::accept(SSL_CTX* context) {
  ALCOVE_CO_TRY(open(context));
  SSL_set_accept_state(ssl_);
  co_return co_await shake_hands();
}

Task<Result<void>> TlsSession::connect(SSL_CTX* context, const std::string& name) {
  ALCOVE_CO_TRY(open(context));
  SSL_set_connect_state(ssl_);
  if (!name.empty() && SSL_set_tlsext_host_name(ssl_, name.c_str()) != 1) {
    failed_ = true;
    co_return fail(openssl_error(Code::kInvalidArgument, "TLS server name"));
  }
  co_return co_await shake_hands();
}

Task<Result<void>> TlsSession::shake_hands() {
  const auto self = shared_from_this();
  const auto limit = std::chrono::steady_clock::now() + handshake_limit_;
  fd_->set_deadline(Direction::kRead, limit);
  fd_->set_deadline(Direction::kWrite, limit);
  Result<void> result;
  while (!open_ && result) {
    ERR_clear_error();
    errno = 0;
    const int done = SSL_do_handshake(ssl_);
    open_ = done == 1;
    if (open_) break;
    const int reason = SSL_get_error(ssl_, done);
    if (reason == SSL_ERROR_WANT_READ) {
      result = co_await fd_->wait(Direction::kRead);
    } else if (reason == SSL_ERROR_WANT_WRITE || reason == SSL_ERROR_WANT_READ) {
      result = co_await fd_->wait(Direction::kWrite);
    } else {
      result = fail(broken(reason, "TLS handshake"));
    }
  }
  fd_->set_deadline(Direction::kRead, read_deadline_);
  fd_->set_deadline(Direction::kWrite, write_deadline_);
  if (!result) failed_ = true;
  co_return result;
}

std::optional<Result<size_t>> TlsSession::try_read(std::span<char> buffer) {
  if (failed_) return Result<size_t>(fail(why_failed()));
  ERR_clear_error();
  errno = 0;
  size_t count = 0;
  transport_.reading = true;
  const int done = SSL_read_ex(ssl_, buffer.data(), buffer.size(), &count);
  transport_.reading = false;
  if (done == 1) return count;
  const int reason = SSL_get_error(ssl_, done);
  if (reason == SSL_ERROR_ZERO_RETURN) return size_t{0};
  if (reason == SSL_ERROR_WANT_READ) return std::nullopt;
  return Result<size_t>(fail(broken(reason, "receive")));
}

bool TlsSession::would_read() {
  if (failed_) return true;
  ERR_clear_error();
  char byte = 0;
  size_t count = 0;
  transport_.reading = true;
  const int done = SSL_peek_ex(ssl_, &byte, 1, &count);
  transport_.reading = false;
  if (done == 1) return true;
  const int reason = SSL_get_error(ssl_, done);
  if (reason == SSL_ERROR_SSL || reason == SSL_ERROR_SYSCALL) failed_ = true;
  // Everything but "nothing yet" is for the next read to tell. Somebody who sends a part of a
  // record has begun: how long the rest may take is for the reader to say.
  return reason != SSL_ERROR_WANT_READ || SSL_has_pending(ssl_) == 1;
}

std::optional<Result<size_t>> TlsSession::try_write(std::string_view data, Direction& waits_for) {
  if (failed_) return Result<size_t>(fail(why_failed()));
  ERR_clear_error();
  errno = 0;
  size_t count = 0;
  const int done = SSL_write_ex(ssl_, data.data(), data.size(), &count);
  if (done == 1) return count;
  const int reason = SSL_get_error(ssl_, done);
  if (reason == SSL_ERROR_WANT_WRITE || reason == SSL_ERROR_WANT_READ) {
    waits_for = reason == SSL_ERROR_WANT_WRITE ? Direction::kWrite : Direction::kRead;
    return std::nullopt;
  }
  return Result<size_t>(fail(broken(reason, "send")));
}

// A message of the protocol, such as a session ticket, that lies in several records has begun:
// nothing can be written in the middle of it. Rare and over at once, unless the peer means harm. It
// is looked for now and then, because the socket's readiness may be a reader's to wait for.
Task<Result<void>> TlsSession::wait_for_peer(TimePoint begin) {
  const TimePoint now = std::chrono::steady_clock::now();
  if (now - begin >= handshake_limit_ || (write_deadline_ && now >= *write_deadline_)) {
    co_return fail(Code::kDeadlineExceeded, "the peer was too slow");
  }
  co_await sleep_for(kPeerPoll);
  const auto task = co_await boost::asio::this_coro::cancellation_state;
  if (task.cancelled() != boost::asio::cancellation_type::none) {
    co_return fail(Code::kCanceled, "the task is canceled");
  }
  co_return Result<void>();
}

Error TlsSession::why_failed() const {
  if (fd_->closed()) return Error(Code::kCanceled, "the stream is closed");
  return Error(Code::kUnavailable, "the TLS connection is broken");
}

void TlsSession::say_goodbye() {
  if (failed_ || !open_ || fd_->closed()) return;
  ERR_clear_error();
  SSL_shutdown(ssl_);
  ERR_clear_error();
}

Error TlsSession::broken(int reason, std::string_view what) {
  failed_ = true;
  if (fd_->closed()) return Error(Code::kCanceled, "the stream is closed");
  if (reason == SSL_ERROR_SYSCALL && errno != 0) {
    return Error(Code::kUnavailable, cat(what, ": ", std::strerror(errno)));
  }
  return openssl_error(Code::kUnavailable, what);
}

Task<Result<size_t>> TlsSession::read_some(std::span<char> buffer) {
  const auto self = shared_from_this();
  if (fd_->wants_turn()) co_await fd_->give_turn();
  for (;;) {
    if (auto done = try_read(buffer)) co_return std::move(*done);
    ALCOVE_CO_TRY(co_await fd_->wait(Direction::kRead));
  }
}

Task<Result<void>> TlsSession::wait_readable() {
  const auto self = shared_from_this();
  while (!would_read()) ALCOVE_CO_TRY(co_await fd_->wait(Direction::kRead));
  co_return Result<void>();
}

Task<Result<void>> TlsSession::write(std::span<const std::string_view> pieces) {
  const auto self = shared_from_this();
  // `first` is the piece that is not written completely, `done` what went out of it.
  size_t first = 0;
  size_t done = 0;
  std::optional<TimePoint> waits_since;
  for (;;) {
    while (first < pieces.size() && done == pieces[first].size()) {
      ++first;
      done = 0;
    }
    if (first == pieces.size()) co_return Result<void>();
    if (fd_->wants_turn()) co_await fd_->give_turn();
    std::optional<Result<size_t>> written;
    Direction waits_for = Direction::kWrite;
    {
      std::string_view record = pieces[first].substr(done, kRecord);
      std::array<char, kRecord> gathered;
      if (record.size() < kRecord && first + 1 < pieces.size()) {
        // Small pieces go out as one record. A write that is tried again gathers the same bytes.
        size_t used = 0;
        for (size_t i = first; i < pieces.size() && used < kRecord; ++i) {
          const std::string_view piece = i == first ? pieces[i].substr(done) : pieces[i];
          used += piece.copy(gathered.data() + used, kRecord - used);
        }
        record = {gathered.data(), used};
      }
      written = try_write(record, waits_for);
    }
    if (!written && waits_for == Direction::kRead) {
      if (!waits_since) waits_since = std::chrono::steady_clock::now();
      ALCOVE_CO_TRY(co_await wait_for_peer(*waits_since));
      continue;
    }
    waits_since.reset();
    if (!written) {
      ALCOVE_CO_TRY(co_await fd_->wait(Direction::kWrite));
      continue;
    }
    if (!*written) co_return fail(std::move(*written).error());
    for (size_t left = **written; left > 0;) {
      const size_t taken = std::min(left, pieces[first].size() - done);
      left -= taken;
      done += taken;
      if (left > 0) {
        ++first;
        done = 0;
      }
    }
  }
}

}  // namespace alcove::net
