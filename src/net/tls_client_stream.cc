// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/tls_client_stream.h"

#include <openssl/ssl.h>

#include <utility>

#include "net/tls_session.h"

namespace alcove::net {
namespace {

constexpr unsigned char kHttp11[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

// Never freed: connections of all loops use it until the process ends.
SSL_CTX* client_context() {
  static SSL_CTX* context = [] {
    SSL_CTX* made = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_verify(made, SSL_VERIFY_NONE, nullptr);
    SSL_CTX_set_min_proto_version(made, TLS1_2_VERSION);
    SSL_CTX_set_options(
        made, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(made, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                               SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(made, 1);
    SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
    // A certificate chain from inside a sandbox may be as long as a service likes.
    SSL_CTX_set_max_cert_list(made, 64 * 1024);
    SSL_CTX_set_alpn_protos(made, kHttp11, sizeof kHttp11);
    return made;
  }();
  return context;
}

}  // namespace

TlsClientStream::TlsClientStream(const boost::asio::any_io_executor& executor, UniqueFd fd)
    : TcpStream(executor, std::move(fd)), session_(std::make_shared<TlsSession>(fd_)) {}

TlsClientStream::~TlsClientStream() { close(); }

Task<Result<void>> TlsClientStream::shake_hands(std::string name) {
  const auto session = session_;
  co_return co_await session->connect(client_context(), name);
}

Task<Result<size_t>> TlsClientStream::read_some(std::span<char> buffer) {
  return session_->read_some(buffer);
}

Task<Result<void>> TlsClientStream::write(std::span<const std::string_view> pieces) {
  return session_->write(pieces);
}

Task<Result<void>> TlsClientStream::wait_readable() { return session_->wait_readable(); }

void TlsClientStream::set_read_deadline(std::optional<TimePoint> deadline) {
  session_->set_deadline(FdWait::Direction::kRead, deadline);
}

void TlsClientStream::set_write_deadline(std::optional<TimePoint> deadline) {
  session_->set_deadline(FdWait::Direction::kWrite, deadline);
}

void TlsClientStream::shutdown_write() {
  session_->say_goodbye();
  TcpStream::shutdown_write();
}

void TlsClientStream::close() {
  session_->say_goodbye();
  TcpStream::close();
}

}  // namespace alcove::net
