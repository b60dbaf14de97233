// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/tls_stream.h"

#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "net/openssl_error.h"

namespace alcove::net {
namespace {

using Direction = FdWait::Direction;

// The content type that every TLS connection begins with.
constexpr unsigned char kHandshakeRecord = 0x16;
constexpr std::chrono::seconds kHandshakeLimit{10};
constexpr size_t kRecord = 16 * 1024;

// OpenSSL's own socket BIO writes without MSG_NOSIGNAL and keeps a descriptor that may be closed.
int bio_write(BIO* bio, const char* data, int size) {
  auto* fd = static_cast<FdWait*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  ssize_t count;
  do {
    count = ::send(fd->fd(), data, static_cast<size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);
  if (count < 0 && errno == EAGAIN) BIO_set_retry_write(bio);
  return static_cast<int>(count);
}

int bio_read(BIO* bio, char* data, int size) {
  auto* fd = static_cast<FdWait*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  ssize_t count;
  do {
    count = ::recv(fd->fd(), data, static_cast<size_t>(size), MSG_DONTWAIT);
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

// The TLS state of one connection. No call of OpenSSL waits: those that would are made again when
// the socket is ready.
class TlsStream::Session {
 public:
  enum class Kind { kUnknown, kPlain, kTls };

  Session(std::shared_ptr<FdWait> fd, TlsIdentityPtr identity)
      : fd_(std::move(fd)), identity_(std::move(identity)) {}
  ~Session() { SSL_free(ssl_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Kind kind() const { return kind_; }
  FdWait& fd() { return *fd_; }

  void set_deadline(Direction direction, std::optional<TimePoint> deadline) {
    (direction == Direction::kRead ? read_deadline_ : write_deadline_) = deadline;
    fd_->set_deadline(direction, deadline);
  }

  void be_plain() {
    kind_ = Kind::kPlain;
    identity_.reset();
  }

  // Finds out what the client speaks.
  Task<Result<void>> begin() {
    for (;;) {
      unsigned char first = 0;
      const ssize_t count = ::recv(fd_->fd(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
      if (count == 1 && first == kHandshakeRecord) break;
      if (count >= 0) {
        be_plain();
        co_return Result<void>();
      }
      if (errno == EINTR) continue;
      if (errno != EAGAIN && !fd_->closed()) co_return fail_errno(errno, "receive");
      ALCOVE_CO_TRY(co_await fd_->wait(Direction::kRead));
    }
    kind_ = Kind::kTls;
    co_return co_await shake_hands();
  }

  // Both return nothing if the socket has to be waited for.
  std::optional<Result<size_t>> try_read(std::span<char> buffer) {
    if (failed_) return Result<size_t>(fail(Code::kUnavailable, "the TLS connection is broken"));
    ERR_clear_error();
    errno = 0;
    size_t count = 0;
    const int done = SSL_read_ex(ssl_, buffer.data(), buffer.size(), &count);
    if (done == 1) return count;
    const int reason = SSL_get_error(ssl_, done);
    if (reason == SSL_ERROR_ZERO_RETURN) return size_t{0};
    if (reason == SSL_ERROR_WANT_READ) return std::nullopt;
    return Result<size_t>(fail(broken(reason, "receive")));
  }

  bool would_read() {
    if (failed_) return true;
    ERR_clear_error();
    char byte = 0;
    size_t count = 0;
    const int done = SSL_peek_ex(ssl_, &byte, 1, &count);
    // Everything but "nothing yet" is for the next read to tell.
    return done == 1 || SSL_get_error(ssl_, done) != SSL_ERROR_WANT_READ;
  }

  std::optional<Result<size_t>> try_write(std::string_view data) {
    if (failed_) return Result<size_t>(fail(Code::kUnavailable, "the TLS connection is broken"));
    ERR_clear_error();
    errno = 0;
    size_t count = 0;
    const int done = SSL_write_ex(ssl_, data.data(), data.size(), &count);
    if (done == 1) return count;
    const int reason = SSL_get_error(ssl_, done);
    if (reason == SSL_ERROR_WANT_WRITE) return std::nullopt;
    return Result<size_t>(fail(broken(reason, "send")));
  }

  // Tells the client that nothing more follows, if that is possible without waiting.
  void say_goodbye() {
    if (kind_ != Kind::kTls || failed_ || !open_ || fd_->closed()) return;
    ERR_clear_error();
    SSL_shutdown(ssl_);
    ERR_clear_error();
  }

 private:
  Task<Result<void>> shake_hands() {
    BIO* bio = BIO_new(bio_method());
    ssl_ = SSL_new(identity_->context());
    if (bio == nullptr || ssl_ == nullptr) {
      BIO_free(bio);
      failed_ = true;
      co_return fail(openssl_error(Code::kResourceExhausted, "TLS"));
    }
    BIO_set_data(bio, fd_.get());
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_, bio, bio);
    SSL_set_accept_state(ssl_);
    const auto limit = std::chrono::steady_clock::now() + kHandshakeLimit;
    fd_->set_deadline(Direction::kRead, limit);
    fd_->set_deadline(Direction::kWrite, limit);
    auto result = co_await accept();
    fd_->set_deadline(Direction::kRead, read_deadline_);
    fd_->set_deadline(Direction::kWrite, write_deadline_);
    if (!result) failed_ = true;
    co_return result;
  }

  Task<Result<void>> accept() {
    for (;;) {
      ERR_clear_error();
      errno = 0;
      const int done = SSL_do_handshake(ssl_);
      if (done == 1) break;
      const int reason = SSL_get_error(ssl_, done);
      if (reason == SSL_ERROR_WANT_READ) {
        ALCOVE_CO_TRY(co_await fd_->wait(Direction::kRead));
      } else if (reason == SSL_ERROR_WANT_WRITE) {
        ALCOVE_CO_TRY(co_await fd_->wait(Direction::kWrite));
      } else {
        co_return fail(broken(reason, "TLS handshake"));
      }
    }
    open_ = true;
    co_return Result<void>();
  }

  Error broken(int reason, std::string_view what) {
    failed_ = true;
    if (fd_->closed()) return Error(Code::kCanceled, "the stream is closed");
    if (reason == SSL_ERROR_SYSCALL && errno != 0) {
      return Error(Code::kUnavailable, cat(what, ": ", std::strerror(errno)));
    }
    return openssl_error(Code::kUnavailable, what);
  }

  const std::shared_ptr<FdWait> fd_;
  TlsIdentityPtr identity_;
  SSL* ssl_ = nullptr;
  Kind kind_ = Kind::kUnknown;
  std::optional<TimePoint> read_deadline_;
  std::optional<TimePoint> write_deadline_;
  bool open_ = false;
  // OpenSSL must not be called again after a fatal error.
  bool failed_ = false;
};

TlsStream::TlsStream(const boost::asio::any_io_executor& executor, UniqueFd fd,
                     TlsIdentityPtr identity)
    : TcpStream(executor, std::move(fd)),
      session_(std::make_shared<Session>(fd_, std::move(identity))) {}

TlsStream::~TlsStream() { close(); }

Task<Result<size_t>> TlsStream::read_some(std::span<char> buffer) {
  const auto session = session_;
  if (session->kind() == Session::Kind::kUnknown) ALCOVE_CO_TRY(co_await session->begin());
  if (session->kind() == Session::Kind::kPlain) {
    co_return co_await TcpStream::read_some(buffer);
  }
  if (session->fd().wants_turn()) co_await session->fd().give_turn();
  for (;;) {
    if (auto done = session->try_read(buffer)) co_return std::move(*done);
    ALCOVE_CO_TRY(co_await session->fd().wait(Direction::kRead));
  }
}

Task<Result<void>> TlsStream::wait_readable() {
  const auto session = session_;
  if (session->kind() == Session::Kind::kUnknown) ALCOVE_CO_TRY(co_await session->begin());
  if (session->kind() == Session::Kind::kPlain) {
    co_return co_await session->fd().wait(Direction::kRead);
  }
  while (!session->would_read()) ALCOVE_CO_TRY(co_await session->fd().wait(Direction::kRead));
  co_return Result<void>();
}

Task<Result<void>> TlsStream::write(std::span<const std::string_view> pieces) {
  const auto session = session_;
  if (session->kind() == Session::Kind::kUnknown) session->be_plain();
  if (session->kind() == Session::Kind::kPlain) co_return co_await TcpStream::write(pieces);
  // `first` is the piece that is not written completely, `done` what went out of it.
  size_t first = 0;
  size_t done = 0;
  for (;;) {
    while (first < pieces.size() && done == pieces[first].size()) {
      ++first;
      done = 0;
    }
    if (first == pieces.size()) co_return Result<void>();
    if (session->fd().wants_turn()) co_await session->fd().give_turn();
    std::optional<Result<size_t>> written;
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
      written = session->try_write(record);
    }
    if (!written) {
      ALCOVE_CO_TRY(co_await session->fd().wait(Direction::kWrite));
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

void TlsStream::set_read_deadline(std::optional<TimePoint> deadline) {
  session_->set_deadline(Direction::kRead, deadline);
}
void TlsStream::set_write_deadline(std::optional<TimePoint> deadline) {
  session_->set_deadline(Direction::kWrite, deadline);
}

void TlsStream::shutdown_write() {
  session_->say_goodbye();
  TcpStream::shutdown_write();
}

void TlsStream::close() {
  session_->say_goodbye();
  TcpStream::close();
}

int TlsStream::native_fd() const {
  return session_->kind() == Session::Kind::kTls ? -1 : TcpStream::native_fd();
}

}  // namespace alcove::net
