// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/tls_session.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>

#include "net/testing/loop_runner.h"
#include "net/testing/socket_pair.h"
#include "net/testing/tls_identity.h"
#include "net/tls_client_stream.h"
#include "net/tls_stream.h"

namespace alcove::net {
namespace {

using namespace std::chrono_literals;

// The other side: OpenSSL that reads and writes memory, so that a test says what passes when.
class MemoryPeer {
 public:
  MemoryPeer(SSL_CTX* context, UniqueFd socket) : socket_(std::move(socket)) {
    ssl_ = SSL_new(context);
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl_, in_, out_);
  }
  ~MemoryPeer() { SSL_free(ssl_); }
  MemoryPeer(const MemoryPeer&) = delete;
  MemoryPeer& operator=(const MemoryPeer&) = delete;

  SSL* ssl() { return ssl_; }

  // What has come so far, up to `most`.
  void take(size_t most = 1 << 20) {
    std::array<char, 4096> piece;
    while (most > 0) {
      const ssize_t got =
          ::recv(socket_.get(), piece.data(), std::min(most, piece.size()), MSG_DONTWAIT);
      if (got <= 0) return;
      BIO_write(in_, piece.data(), static_cast<int>(got));
      most -= static_cast<size_t>(got);
    }
  }
  void skip(size_t count) {
    std::array<char, 4096> piece;
    while (count > 0) {
      const ssize_t got =
          ::recv(socket_.get(), piece.data(), std::min(count, piece.size()), MSG_DONTWAIT);
      ASSERT_GT(got, 0);
      count -= static_cast<size_t>(got);
    }
  }
  // Sends what there is to send, up to `most`; how much is left.
  size_t give(size_t most = 1 << 20) {
    std::array<char, 4096> piece;
    while (most > 0) {
      const int got = BIO_read(out_, piece.data(), static_cast<int>(std::min(most, piece.size())));
      if (got <= 0) break;
      EXPECT_EQ(::send(socket_.get(), piece.data(), static_cast<size_t>(got), 0), got);
      most -= static_cast<size_t>(got);
    }
    return BIO_ctrl_pending(out_);
  }
  // What can be read now.
  std::string read() {
    std::string all;
    std::array<char, 16 * 1024> piece;
    size_t got = 0;
    while (SSL_read_ex(ssl_, piece.data(), piece.size(), &got) == 1) all.append(piece.data(), got);
    return all;
  }

 private:
  UniqueFd socket_;
  SSL* ssl_;
  BIO* in_;
  BIO* out_;
};

// Lets the loop do what it can do now.
void turn(boost::asio::io_context& loop) {
  loop.restart();
  loop.run_for(5ms);
}

template <typename T>
void spawn(boost::asio::io_context& loop, Task<T> task, std::optional<T>& result) {
  boost::asio::co_spawn(loop, std::move(task), [&result](std::exception_ptr, T value) {
    result.emplace(std::move(value));
  });
}

TEST(TlsSession, AStalledHandshakeIsGivenUp) {
  boost::asio::io_context loop;
  SSL_CTX* client = SSL_CTX_new(TLS_client_method());
  const TlsIdentityPtr identity = testing::make_identity();
  for (const std::string_view begun : {"", "\x16\x03\x01"}) {
    for (const bool accepts : {true, false}) {
      auto [own, other] = testing::make_socket_pair();
      if (!begun.empty()) ASSERT_GT(::send(other.get(), begun.data(), begun.size(), 0), 0);
      const auto session = std::make_shared<TlsSession>(
          std::make_shared<FdWait>(loop.get_executor(), std::move(own)), 30ms);
      const auto begin = std::chrono::steady_clock::now();
      const auto done = testing::run(
          loop, accepts ? session->accept(identity->context()) : session->connect(client, "x"));
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().code(), Code::kDeadlineExceeded);
      EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
    }
  }
  SSL_CTX_free(client);
}

TEST(TlsSession, APeerThatChangesKeysAndDoesNotReadIsStillRead) {
  boost::asio::io_context loop;
  auto [served, own] = testing::make_socket_pair();
  const int served_fd = served.get();
  TlsStream server(loop.get_executor(), std::move(served), testing::make_identity());
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  {
    MemoryPeer client(context, std::move(own));
    SSL_set_connect_state(client.ssl());
    std::optional<Result<size_t>> read;
    std::array<char, 8> buffer;
    spawn(loop, server.read_some(buffer), read);
    for (int i = 0; i < 100 && SSL_do_handshake(client.ssl()) != 1; ++i) {
      client.give();
      turn(loop);
      client.take();
    }
    // The server owes an answer to this, which it gives with what it writes next.
    ASSERT_EQ(SSL_key_update(client.ssl(), SSL_KEY_UPDATE_REQUESTED), 1);
    SSL_write(client.ssl(), "a", 1);
    client.give();
    testing::run_until(loop, [&] { return read.has_value(); });
    ASSERT_EQ(**read, 1u);
    client.take();
    client.read();

    size_t filled = 0;
    const std::string filling(1000, 'f');
    for (ssize_t sent;
         (sent = ::send(served_fd, filling.data(), filling.size(), MSG_DONTWAIT)) > 0;) {
      filled += static_cast<size_t>(sent);
    }
    std::optional<Result<void>> written;
    spawn(loop, server.write("answer"), written);
    turn(loop);
    ASSERT_FALSE(written);
    SSL_write(client.ssl(), "b", 1);
    client.give();
    const auto next = testing::run(loop, server.read_some(buffer));
    ASSERT_TRUE(next) << next.error().message();
    EXPECT_EQ(std::string(buffer.data(), *next), "b");

    client.skip(filled);
    testing::run_until(loop, [&] { return written.has_value(); });
    ASSERT_TRUE(*written) << written->error().message();
    client.take();
    EXPECT_EQ(client.read(), "answer");
  }
  SSL_CTX_free(context);
}

// A ticket that takes several records.
SSL_CTX* make_context_with_long_tickets() {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  const PemPair pair = testing::make_pair();
  BIO* certificate = BIO_new_mem_buf(pair.certificate.data(), -1);
  X509* read = PEM_read_bio_X509(certificate, nullptr, nullptr, nullptr);
  SSL_CTX_use_certificate(context, read);
  X509_free(read);
  BIO_free(certificate);
  BIO* key = BIO_new_mem_buf(pair.key.data(), -1);
  EVP_PKEY* read_key = PEM_read_bio_PrivateKey(key, nullptr, nullptr, nullptr);
  SSL_CTX_use_PrivateKey(context, read_key);
  EVP_PKEY_free(read_key);
  BIO_free(key);
  SSL_CTX_set_max_send_fragment(context, 512);
  SSL_CTX_set_num_tickets(context, 1);
  SSL_CTX_set_session_ticket_cb(
      context,
      [](SSL* ssl, void*) {
        const std::string data(3000, 't');
        return SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), data.data(), data.size());
      },
      [](SSL*, SSL_SESSION*, const unsigned char*, size_t, SSL_TICKET_STATUS, void*) {
        return SSL_TICKET_RETURN_IGNORE;
      },
      nullptr);
  return context;
}

class LongTicketTest : public ::testing::Test {
 protected:
  LongTicketTest() {
    auto [own, other] = testing::make_socket_pair();
    client_ = std::make_unique<TlsClientStream>(loop_.get_executor(), std::move(own));
    server_ = std::make_unique<MemoryPeer>(context_, std::move(other));
    SSL_set_accept_state(server_->ssl());
    std::optional<Result<void>> shaken;
    spawn(loop_, client_->shake_hands(""), shaken);
    for (int i = 0; i < 100 && !(shaken && SSL_is_init_finished(server_->ssl())); ++i) {
      turn(loop_);
      server_->take();
      SSL_do_handshake(server_->ssl());
      // The ticket comes last; of it the first record only.
      left_ = server_->give(SSL_is_init_finished(server_->ssl()) ? 600 : 1 << 20);
    }
    EXPECT_TRUE(shaken && *shaken);
    spawn(loop_, client_->read_some(buffer_), read_);
    turn(loop_);
  }
  ~LongTicketTest() override {
    server_.reset();
    SSL_CTX_free(context_);
  }

  boost::asio::io_context loop_;
  SSL_CTX* context_ = make_context_with_long_tickets();
  std::unique_ptr<TlsClientStream> client_;
  std::unique_ptr<MemoryPeer> server_;
  size_t left_ = 0;
  std::array<char, 8> buffer_{};
  std::optional<Result<size_t>> read_;
};

TEST_F(LongTicketTest, AWriteWaitsForTheRestOfAMessageAndDoesNotSpin) {
  ASSERT_GT(left_, 1000u);
  std::optional<Result<void>> written;
  spawn(loop_, client_->write("request"), written);
  loop_.restart();
  EXPECT_LE(loop_.run_for(100ms), 60u);
  ASSERT_FALSE(written) << (*written ? "written" : written->error().message());
  server_->give();
  testing::run_until(loop_, [&] { return written.has_value(); });
  ASSERT_TRUE(*written) << written->error().message();
  server_->take();
  EXPECT_EQ(server_->read(), "request");
  SSL_write(server_->ssl(), "answer", 6);
  server_->give();
  testing::run_until(loop_, [&] { return read_.has_value(); });
  EXPECT_EQ(std::string(buffer_.data(), **read_), "answer");
}

TEST_F(LongTicketTest, AWriteThatWaitsForAMessageHasItsDeadline) {
  client_->set_write_deadline(std::chrono::steady_clock::now() + 30ms);
  const auto written = testing::run(loop_, client_->write("request"));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code(), Code::kDeadlineExceeded);
  client_->close();
  testing::run_until(loop_, [&] { return read_.has_value(); });
}

}  // namespace
}  // namespace alcove::net
