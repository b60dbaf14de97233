// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/tls_stream.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "net/tls_session.h"

namespace alcove::net {
namespace {

using Direction = FdWait::Direction;

// The content type that every TLS connection begins with.
constexpr unsigned char kHandshakeRecord = 0x16;

}  // namespace

// What is known of the connection, and its TLS if it has any.
class TlsStream::Session {
 public:
  enum class Kind { kUnknown, kPlain, kTls };

  Session(std::shared_ptr<FdWait> fd, TlsIdentityPtr identity,
          std::shared_ptr<TlsHandshakes> handshakes)
      : fd_(std::move(fd)), identity_(std::move(identity)), handshakes_(std::move(handshakes)) {}

  Kind kind() const { return kind_; }
  FdWait& fd() { return *fd_; }
  TlsSession& tls() { return *tls_; }

  void set_deadline(Direction direction, std::optional<TimePoint> deadline) {
    if (tls_) return tls_->set_deadline(direction, deadline);
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
    tls_ = std::make_shared<TlsSession>(fd_);
    tls_->set_deadline(Direction::kRead, read_deadline_);
    tls_->set_deadline(Direction::kWrite, write_deadline_);
    std::optional<TlsHandshakes::Mark> mark;
    if (handshakes_) mark.emplace(*handshakes_, fd_);
    co_return co_await tls_->accept(identity_->context());
  }

  void say_goodbye() {
    if (tls_) tls_->say_goodbye();
  }

 private:
  const std::shared_ptr<FdWait> fd_;
  TlsIdentityPtr identity_;
  const std::shared_ptr<TlsHandshakes> handshakes_;
  Kind kind_ = Kind::kUnknown;
  std::shared_ptr<TlsSession> tls_;
  // Until there is a session that knows them.
  std::optional<TimePoint> read_deadline_;
  std::optional<TimePoint> write_deadline_;
};

TlsStream::TlsStream(const boost::asio::any_io_executor& executor, UniqueFd fd,
                     TlsIdentityPtr identity, std::shared_ptr<TlsHandshakes> handshakes)
    : TcpStream(executor, std::move(fd)),
      session_(std::make_shared<Session>(fd_, std::move(identity), std::move(handshakes))) {}

TlsStream::~TlsStream() { close(); }

Task<Result<size_t>> TlsStream::read_some(std::span<char> buffer) {
  switch (session_->kind()) {
    case Session::Kind::kPlain:
      return TcpStream::read_some(buffer);
    case Session::Kind::kTls:
      return session_->tls().read_some(buffer);
    case Session::Kind::kUnknown:
      break;
  }
  return first_read(buffer);
}

Task<Result<size_t>> TlsStream::first_read(std::span<char> buffer) {
  const auto session = session_;
  ALCOVE_CO_TRY(co_await session->begin());
  // The stream itself may be gone.
  if (session->fd().closed()) co_return fail(Code::kCanceled, "the stream is closed");
  co_return co_await read_some(buffer);
}

Task<Result<void>> TlsStream::wait_readable() {
  switch (session_->kind()) {
    case Session::Kind::kPlain:
      return TcpStream::wait_readable();
    case Session::Kind::kTls:
      return session_->tls().wait_readable();
    case Session::Kind::kUnknown:
      break;
  }
  return first_wait();
}

Task<Result<void>> TlsStream::first_wait() {
  const auto session = session_;
  ALCOVE_CO_TRY(co_await session->begin());
  // The stream itself may be gone.
  if (session->fd().closed()) co_return fail(Code::kCanceled, "the stream is closed");
  co_return co_await wait_readable();
}

Task<Result<void>> TlsStream::write(std::span<const std::string_view> pieces) {
  if (session_->kind() == Session::Kind::kTls) return session_->tls().write(pieces);
  session_->be_plain();
  return TcpStream::write(pieces);
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
