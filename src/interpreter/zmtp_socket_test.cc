// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// Our sockets against libzmq's, and against peers that break the protocol.
#include "interpreter/zmtp_socket.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zmq.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "base/strings.h"
#include "interpreter/zmtp_command.h"
#include "interpreter/zmtp_endpoint.h"
#include "net/testing/loop_runner.h"
#include "net/testing/socket_pair.h"

#if __has_feature(thread_sanitizer)
// Debian's libzmq hands memory from its threads to ours by means that the sanitizer cannot see.
extern "C" const char* __tsan_default_suppressions() { return "race:libzmq.so\n"; }
#endif

namespace alcove::interpreter {
namespace {

using net::testing::run;
using namespace std::chrono_literals;

constexpr auto kTimeout = std::chrono::milliseconds(10s);

// A socket of libzmq, bound to an endpoint of its choice.
class ZmqPeer {
 public:
  ZmqPeer(int type, const std::string& bind_to)
      : context_(::zmq_ctx_new()), socket_(::zmq_socket(context_, type)) {
    const int unlimited = 0;
    const int patience = 10000;
    ::zmq_setsockopt(socket_, ZMQ_SNDHWM, &unlimited, sizeof unlimited);
    ::zmq_setsockopt(socket_, ZMQ_RCVTIMEO, &patience, sizeof patience);
    ::zmq_setsockopt(socket_, ZMQ_LINGER, &unlimited, sizeof unlimited);
    EXPECT_EQ(::zmq_bind(socket_, bind_to.c_str()), 0) << ::zmq_strerror(::zmq_errno());
    char name[256];
    size_t size = sizeof name;
    ::zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, name, &size);
    endpoint_ = name;
  }
  ~ZmqPeer() {
    ::zmq_close(socket_);
    ::zmq_ctx_term(context_);
  }
  ZmqPeer(const ZmqPeer&) = delete;
  ZmqPeer& operator=(const ZmqPeer&) = delete;

  const std::string& endpoint() const { return endpoint_; }

  ZmtpMessage receive() {
    ZmtpMessage parts;
    int more = 1;
    while (more != 0) {
      zmq_msg_t part;
      ::zmq_msg_init(&part);
      if (::zmq_msg_recv(&part, socket_, 0) < 0) return {"nothing came"};
      parts.emplace_back(static_cast<const char*>(::zmq_msg_data(&part)), ::zmq_msg_size(&part));
      more = ::zmq_msg_more(&part);
      ::zmq_msg_close(&part);
    }
    return parts;
  }
  void send(const ZmtpMessage& parts) {
    for (size_t i = 0; i < parts.size(); ++i) {
      const int flags = i + 1 < parts.size() ? ZMQ_SNDMORE : 0;
      EXPECT_GE(::zmq_send(socket_, parts[i].data(), parts[i].size(), flags), 0);
    }
  }

 private:
  void* context_;
  void* socket_;
  std::string endpoint_;
};

Task<Result<std::unique_ptr<ZmtpSocket>>> connect(std::string endpoint, ZmtpSocketType type,
                                                  std::string identity) {
  ALCOVE_CO_TRY_ASSIGN(auto stream, co_await connect_zmtp_endpoint(std::move(endpoint), kTimeout));
  co_return co_await ZmtpSocket::open(std::move(stream), type, std::move(identity), kTimeout);
}

class ZmtpAgainstLibzmq : public ::testing::TestWithParam<std::string> {
 protected:
  static std::string address() {
    if (GetParam() == "tcp") return "tcp://127.0.0.1:*";
    return cat("ipc:///tmp/alcove-test-zmtp-", ::getpid());
  }
  boost::asio::io_context loop_;
};

TEST_P(ZmtpAgainstLibzmq, DealerTalksToRouter) {
  ZmqPeer router(ZMQ_ROUTER, address());
  auto dealer = run(loop_, connect(router.endpoint(), ZmtpSocketType::kDealer, "me"));
  ASSERT_TRUE(dealer) << dealer.error().message();
  for (const size_t size : {0, 1, 255, 256, 65535, 3 << 20}) {
    const std::string body(size, 'b');
    ASSERT_TRUE(run(loop_, (*dealer)->send({"", body, "end"})));
    EXPECT_EQ(router.receive(), (ZmtpMessage{"me", "", body, "end"}));
    router.send({"me", body, "", "answer"});
    const auto answer = run(loop_, (*dealer)->receive());
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_EQ(*answer, (ZmtpMessage{body, "", "answer"}));
  }
}

TEST_P(ZmtpAgainstLibzmq, SubGetsEverythingInOrder) {
  ZmqPeer publisher(ZMQ_XPUB, address());
  auto sub = run(loop_, connect(publisher.endpoint(), ZmtpSocketType::kSub, ""));
  ASSERT_TRUE(sub) << sub.error().message();
  EXPECT_EQ(publisher.receive(), (ZmtpMessage{"\1"}));
  constexpr int kCount = 20000;
  for (int i = 0; i < kCount; ++i) publisher.send({"topic", cat("line ", i)});
  for (int i = 0; i < kCount; ++i) {
    const auto message = run(loop_, (*sub)->receive());
    ASSERT_TRUE(message);
    ASSERT_EQ(*message, (ZmtpMessage{"topic", cat("line ", i)}));
  }
}

TEST_P(ZmtpAgainstLibzmq, WrongTypesOfSocketsAreRefused) {
  ZmqPeer publisher(ZMQ_PUB, address());
  EXPECT_FALSE(run(loop_, connect(publisher.endpoint(), ZmtpSocketType::kDealer, "me")));
}

TEST_P(ZmtpAgainstLibzmq, ThePeersEndIsSeen) {
  auto router = std::make_unique<ZmqPeer>(ZMQ_ROUTER, address());
  auto dealer = run(loop_, connect(router->endpoint(), ZmtpSocketType::kDealer, "me"));
  ASSERT_TRUE(dealer);
  router.reset();
  const auto nothing = run(loop_, (*dealer)->receive());
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code(), Code::kUnavailable);
}

INSTANTIATE_TEST_SUITE_P(Transports, ZmtpAgainstLibzmq, ::testing::Values("ipc", "tcp"),
                         [](const auto& parameter) { return parameter.param; });

// A peer that says `bytes` after our greeting and reads nothing else.
class ZmtpAgainstHostilePeer : public ::testing::Test {
 protected:
  Result<std::unique_ptr<ZmtpSocket>> open_with(std::string bytes,
                                                std::chrono::milliseconds timeout = kTimeout) {
    auto [ours, theirs] = net::testing::make_stream_pair(loop_);
    theirs_ = std::move(theirs);
    EXPECT_TRUE(run(loop_, theirs_->write(std::string_view(bytes))));
    return run(loop_, ZmtpSocket::open(std::move(ours), ZmtpSocketType::kDealer, "me", timeout));
  }
  static std::string command(const std::string& body) {
    return make_zmtp_frame_head(ZmtpFrame::Kind::kCommand, body.size(), /*more=*/false) + body;
  }
  static std::string good_start() {
    return make_zmtp_greeting() +
           command(make_zmtp_ready({.socket_type = "ROUTER", .identity = ""}));
  }

  boost::asio::io_context loop_;
  std::unique_ptr<net::Stream> theirs_;
};

TEST_F(ZmtpAgainstHostilePeer, BadHandshakesEndWithAnError) {
  EXPECT_FALSE(open_with(std::string(64, 'x')));
  EXPECT_FALSE(open_with(make_zmtp_greeting() + std::string("\0\1x", 3)));
  EXPECT_FALSE(open_with(make_zmtp_greeting() + command("\5ERROR\4nope")));
  EXPECT_FALSE(open_with(make_zmtp_greeting() + command("\5READY\xFFoops")));
  EXPECT_TRUE(open_with(good_start()));
}

TEST_F(ZmtpAgainstHostilePeer, SilenceEndsAtTheDeadline) {
  const auto socket = open_with(make_zmtp_greeting().substr(0, 10), 50ms);
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().code(), Code::kDeadlineExceeded);
}

TEST_F(ZmtpAgainstHostilePeer, PingsAreAnswered) {
  auto socket = open_with(good_start() + command(std::string("\4PING\0\1ctx", 10)) +
                          std::string("\0\2hi", 4));
  ASSERT_TRUE(socket);
  EXPECT_EQ(*run(loop_, (*socket)->receive()), (ZmtpMessage{"hi"}));
  std::string seen;
  while (seen.find("PONGctx") == std::string::npos) {
    char buffer[256];
    const auto count = run(loop_, theirs_->read_some(buffer));
    ASSERT_TRUE(count);
    seen.append(buffer, *count);
  }
}

TEST_F(ZmtpAgainstHostilePeer, TooLargeFramesAreRefusedBeforeTheyCome) {
  auto socket = open_with(good_start() + std::string("\2\0\0\1\0\0\0\0\0", 9));
  ASSERT_TRUE(socket);
  const auto message = run(loop_, (*socket)->receive());
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().code(), Code::kResourceExhausted);
}

TEST(ZmtpEndpoint, RefusesWhatIsNoEndpoint) {
  boost::asio::io_context loop;
  for (const std::string bad :
       {"", "udp://x", "tcp://127.0.0.1", "tcp://localhost:1", "ipc://", "ipc:///nowhere/at/all"}) {
    EXPECT_FALSE(run(loop, connect_zmtp_endpoint(bad, kTimeout))) << bad;
  }
}

}  // namespace
}  // namespace alcove::interpreter
