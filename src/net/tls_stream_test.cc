// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/tls_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <string>
#include <thread>

#include "net/testing/loop_runner.h"
#include "net/testing/socket_pair.h"
#include "net/tls_authority.h"
#include "net/tls_client_stream.h"

namespace alcove::net {
namespace {

using namespace std::chrono_literals;

constexpr const char* kDomain = "alcove.localhost";

struct Made {
  PemPair authority = *make_authority(kDomain, 24h);
  PemPair leaf = *issue_certificate(authority, kDomain, 24h);
  TlsIdentityPtr identity = *TlsIdentity::make(leaf.certificate, leaf.key);
};

const Made& made() {
  static const Made value;
  return value;
}

// A blocking OpenSSL client that trusts the authority, for a thread of its own.
class Client {
 public:
  Client(int fd, const std::string& name, const std::string& trusted) {
    context_ = SSL_CTX_new(TLS_client_method());
    BIO* reader = BIO_new_mem_buf(trusted.data(), static_cast<int>(trusted.size()));
    X509* root = PEM_read_bio_X509(reader, nullptr, nullptr, nullptr);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context_), root);
    X509_free(root);
    BIO_free(reader);
    SSL_CTX_set_verify(context_, SSL_VERIFY_PEER, nullptr);
    ssl_ = SSL_new(context_);
    SSL_set1_host(ssl_, name.c_str());
    SSL_set_tlsext_host_name(ssl_, name.c_str());
    SSL_set_fd(ssl_, fd);
  }
  ~Client() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }
  SSL* ssl() { return ssl_; }
  SSL_CTX* context() { return context_; }
  void offer(const std::string& protocols) {
    SSL_set_alpn_protos(ssl_, reinterpret_cast<const unsigned char*>(protocols.data()),
                        static_cast<unsigned>(protocols.size()));
  }

 private:
  SSL_CTX* context_;
  SSL* ssl_;
};

void make_blocking(const UniqueFd& fd) {
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
}

Task<Result<std::string>> read_all(Stream& stream) {
  std::string all;
  std::array<char, 5000> buffer;
  for (;;) {
    auto count = co_await stream.read_some(buffer);
    if (!count) co_return fail(std::move(count).error());
    if (*count == 0) co_return all;
    all.append(buffer.data(), *count);
  }
}

class TlsStreamTest : public ::testing::Test {
 protected:
  TlsStreamTest() {
    auto [server, client] = testing::make_socket_pair();
    stream_ = std::make_unique<TlsStream>(loop_.get_executor(), std::move(server), made().identity);
    peer_ = std::move(client);
    make_blocking(peer_);
  }
  boost::asio::io_context loop_;
  std::unique_ptr<TlsStream> stream_;
  UniqueFd peer_;
};

TEST_F(TlsStreamTest, PlainBytesPassAsTheyAre) {
  ASSERT_EQ(::send(peer_.get(), "GET", 3, 0), 3);
  std::array<char, 8> buffer;
  ASSERT_TRUE(testing::run(loop_, stream_->wait_readable()));
  EXPECT_EQ(*testing::run(loop_, stream_->read_some(buffer)), 3u);
  EXPECT_GE(stream_->native_fd(), 0);
  ASSERT_TRUE(testing::run(loop_, stream_->write("answer")));
  std::array<char, 8> got;
  EXPECT_EQ(::recv(peer_.get(), got.data(), got.size(), 0), 6);
}

TEST_F(TlsStreamTest, CarriesLargeDataBothWays) {
  const std::string sent(3'000'000, 'x');
  std::string received;
  bool verified = false;
  std::string protocol;
  std::thread client([&] {
    Client tls(peer_.get(), "49983-abc.alcove.localhost", made().authority.certificate);
    tls.offer(std::string("\x02h2\x08http/1.1"));
    verified = SSL_connect(tls.ssl()) == 1;
    const unsigned char* chosen = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(tls.ssl(), &chosen, &size);
    protocol.assign(reinterpret_cast<const char*>(chosen), size);
    SSL_write(tls.ssl(), sent.data(), static_cast<int>(sent.size()));
    SSL_shutdown(tls.ssl());
    std::array<char, 4096> buffer;
    for (int n; (n = SSL_read(tls.ssl(), buffer.data(), buffer.size())) > 0;) {
      received.append(buffer.data(), static_cast<size_t>(n));
    }
  });
  const auto got = testing::run(loop_, read_all(*stream_));
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_TRUE(*got == sent);
  EXPECT_EQ(stream_->native_fd(), -1);
  const std::string big(1'000'000, 'y');
  const std::string_view pieces[] = {"head ", "", big, " tail"};
  const auto wrote = testing::run(loop_, stream_->write(pieces));
  ASSERT_TRUE(wrote) << wrote.error().message();
  stream_->close();
  client.join();
  EXPECT_TRUE(verified);
  EXPECT_EQ(protocol, "http/1.1");
  EXPECT_TRUE(received == "head " + big + " tail");
}

TEST_F(TlsStreamTest, WaitsForBytesOfTheApplicationNotOfTheHandshake) {
  std::thread client([&] {
    Client tls(peer_.get(), kDomain, made().authority.certificate);
    ASSERT_EQ(SSL_connect(tls.ssl()), 1);
    std::this_thread::sleep_for(20ms);
    SSL_write(tls.ssl(), "x", 1);
    char byte = 0;
    SSL_read(tls.ssl(), &byte, 1);
  });
  ASSERT_TRUE(testing::run(loop_, stream_->wait_readable()));
  std::array<char, 8> buffer;
  EXPECT_EQ(*testing::run(loop_, stream_->read_some(buffer)), 1u);
  stream_->set_read_deadline(std::chrono::steady_clock::now() + 5ms);
  const auto late = testing::run(loop_, stream_->read_some(buffer));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Code::kDeadlineExceeded);
  stream_->close();
  client.join();
}

TEST_F(TlsStreamTest, RefusesOldVersionsForeignProtocolsAndGarbage) {
  const auto refused = [&](auto prepare) {
    auto [server, client_fd] = testing::make_socket_pair();
    make_blocking(client_fd);
    TlsStream stream(loop_.get_executor(), std::move(server), made().identity);
    std::thread client([&] {
      Client tls(client_fd.get(), kDomain, made().authority.certificate);
      prepare(tls);
      EXPECT_NE(SSL_connect(tls.ssl()), 1);
      client_fd.reset();
    });
    std::array<char, 8> buffer;
    const auto got = testing::run(loop_, stream.read_some(buffer));
    stream.close();
    client.join();
    EXPECT_FALSE(got);
    EXPECT_FALSE(testing::run(loop_, stream.read_some(buffer)));
  };
  refused([](Client& tls) {
    SSL_set_security_level(tls.ssl(), 0);
    SSL_set_min_proto_version(tls.ssl(), TLS1_VERSION);
    SSL_set_max_proto_version(tls.ssl(), TLS1_1_VERSION);
  });
  refused([](Client& tls) { tls.offer(std::string("\x02h2")); });

  const std::string garbage = "\x16 this is no handshake of any kind";
  ASSERT_GT(::send(peer_.get(), garbage.data(), garbage.size(), 0), 0);
  std::array<char, 8> buffer;
  EXPECT_FALSE(testing::run(loop_, stream_->read_some(buffer)));
}

TEST(TlsHandshakes, TheOldestOfTooManyIsGivenUp) {
  boost::asio::io_context loop;
  const auto handshakes = std::make_shared<TlsHandshakes>(/*most=*/2);
  struct Half {
    std::unique_ptr<TlsStream> stream;
    UniqueFd client;
    std::array<char, 8> buffer{};
    std::optional<Result<size_t>> got;
  };
  std::array<Half, 3> halves;
  for (Half& half : halves) {
    auto [server, client] = testing::make_socket_pair();
    half.client = std::move(client);
    half.stream = std::make_unique<TlsStream>(loop.get_executor(), std::move(server),
                                              made().identity, handshakes);
    ASSERT_EQ(::send(half.client.get(), "\x16\x03\x01", 3, 0), 3);
    boost::asio::co_spawn(loop, half.stream->read_some(half.buffer),
                          [&half](std::exception_ptr, Result<size_t> got) { half.got = got; });
    testing::run_until(loop, [&] { return handshakes->size() > 0; });
  }
  testing::run_until(loop, [&] { return halves[0].got.has_value(); });
  EXPECT_EQ(halves[0].got->error().code(), Code::kCanceled);
  EXPECT_FALSE(halves[1].got || halves[2].got);
  EXPECT_EQ(handshakes->size(), 2u);
  for (Half& half : halves) half.stream->close();
  testing::run_until(loop, [&] { return halves[1].got && halves[2].got; });
  EXPECT_EQ(handshakes->size(), 0u);
}

// A server's stream and a client's, both of one loop.
class TlsClientStreamTest : public ::testing::Test {
 protected:
  TlsClientStreamTest() {
    auto [server, client] = testing::make_socket_pair();
    server_ = std::make_unique<TlsStream>(loop_.get_executor(), std::move(server), made().identity);
    client_ = std::make_unique<TlsClientStream>(loop_.get_executor(), std::move(client));
  }
  boost::asio::io_context loop_;
  std::unique_ptr<TlsStream> server_;
  std::unique_ptr<TlsClientStream> client_;
};

TEST_F(TlsClientStreamTest, CarriesDataBothWaysWhateverTheCertificate) {
  const std::string sent(300'000, 'x');
  std::optional<Result<std::string>> received;
  boost::asio::co_spawn(loop_, read_all(*server_),
                        [&](std::exception_ptr, Result<std::string> got) { received = got; });
  ASSERT_TRUE(testing::run(loop_, client_->shake_hands("not.the.name.of.the.certificate")));
  EXPECT_EQ(client_->native_fd(), -1);
  ASSERT_TRUE(testing::run(loop_, client_->write(sent)));
  client_->shutdown_write();
  testing::run_until(loop_, [&] { return received.has_value(); });
  ASSERT_TRUE(*received);
  EXPECT_TRUE(**received == sent);
  ASSERT_TRUE(testing::run(loop_, server_->write("answer")));
  server_->close();
  EXPECT_EQ(*testing::run(loop_, read_all(*client_)), "answer");
}

TEST_F(TlsClientStreamTest, AWaitThatMeetsABrokenRecordIsTheEnd) {
  auto [server, client] = testing::make_socket_pair();
  const int socket = client.get();
  TlsStream served(loop_.get_executor(), std::move(server), made().identity);
  TlsClientStream stream(loop_.get_executor(), std::move(client));
  std::optional<Result<void>> ready;
  boost::asio::co_spawn(loop_, served.wait_readable(),
                        [&](std::exception_ptr, Result<void> got) { ready = got; });
  ASSERT_TRUE(testing::run(loop_, stream.shake_hands("")));
  ASSERT_EQ(::send(socket, "\x17\x03\x03\0\x20 a record that nobody encrypted.", 37, 0), 37);
  testing::run_until(loop_, [&] { return ready.has_value(); });
  ASSERT_TRUE(*ready);
  // OpenSSL is not asked again.
  const auto written = testing::run(loop_, served.write("answer"));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message(), "the TLS connection is broken");
}

TEST_F(TlsClientStreamTest, FailsWithAServerThatSpeaksSomethingElse) {
  auto [server, client] = testing::make_socket_pair();
  TlsClientStream stream(loop_.get_executor(), std::move(client));
  const std::string plain = "HTTP/1.1 400 Bad Request\r\n\r\n";
  ASSERT_GT(::send(server.get(), plain.data(), plain.size(), 0), 0);
  EXPECT_FALSE(testing::run(loop_, stream.shake_hands("")));
  EXPECT_FALSE(testing::run(loop_, stream.write("x")));
}

TEST(TlsAuthority, VouchesForNothingButItsDomain) {
  // A leaf for another name, by the same authority.
  const PemPair foreign = *issue_certificate(made().authority, "example.org", 24h);
  const TlsIdentityPtr identity = *TlsIdentity::make(foreign.certificate, foreign.key);
  boost::asio::io_context loop;
  auto [server, client_fd] = testing::make_socket_pair();
  make_blocking(client_fd);
  TlsStream stream(loop.get_executor(), std::move(server), identity);
  long verdict = X509_V_OK;
  std::thread client([&] {
    Client tls(client_fd.get(), "example.org", made().authority.certificate);
    EXPECT_NE(SSL_connect(tls.ssl()), 1);
    verdict = SSL_get_verify_result(tls.ssl());
    client_fd.reset();
  });
  std::array<char, 8> buffer;
  EXPECT_FALSE(testing::run(loop, stream.read_some(buffer)));
  client.join();
  EXPECT_EQ(verdict, X509_V_ERR_PERMITTED_VIOLATION);
}

TEST(TlsIdentity, RefusesAWrongPairAndKnowsItsNames) {
  EXPECT_TRUE(made().identity->covers("api.alcove.localhost"));
  EXPECT_TRUE(made().identity->covers("alcove.localhost"));
  EXPECT_FALSE(made().identity->covers("a.b.alcove.localhost"));
  EXPECT_FALSE(made().identity->covers("example.org"));
  EXPECT_GT(made().identity->not_after(), std::chrono::system_clock::now() + 23h);

  const auto mixed = TlsIdentity::make(made().leaf.certificate, made().authority.key);
  ASSERT_FALSE(mixed);
  EXPECT_NE(mixed.error().message().find("the key is not the certificate's"), std::string::npos);
  EXPECT_FALSE(TlsIdentity::make("", made().leaf.key));
  EXPECT_FALSE(TlsIdentity::make(made().leaf.certificate, "nonsense"));

  const auto now = std::chrono::system_clock::now();
  const auto& authority = made().authority.certificate;
  EXPECT_TRUE(is_issued_by(made().leaf.certificate, authority, now));
  EXPECT_FALSE(is_issued_by(made().leaf.certificate, authority, now + 48h));
  EXPECT_FALSE(
      is_issued_by(made().leaf.certificate, make_authority(kDomain, 24h)->certificate, now));
}

}  // namespace
}  // namespace alcove::net
