// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/upstream_pool.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <tuple>

#include <boost/asio/io_context.hpp>

#include "base/unique_fd.h"
#include "gateway/routing.h"
#include "net/tcp_stream.h"
#include "net/tls_client_stream.h"

namespace alcove::gateway {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class UpstreamPoolTest : public testing::Test {
 protected:
  // A connection, and the service's end of it.
  std::pair<http::ClientConnection, UniqueFd> make_connection() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    return {http::ClientConnection(
                std::make_unique<net::TcpStream>(loop_.get_executor(), UniqueFd(ends[0]))),
            UniqueFd(ends[1])};
  }

  boost::asio::io_context loop_;
  std::shared_ptr<IdleBudget> budget_ = std::make_shared<IdleBudget>();
  UpstreamPool pool_{budget_};
  const UpstreamPool::TimePoint start_ = std::chrono::steady_clock::now();
};

TEST_F(UpstreamPoolTest, GivesBackOnlyConnectionsToTheSamePort) {
  auto [connection, service] = make_connection();
  pool_.put({.port = kAgentPort}, std::move(connection), start_);
  EXPECT_FALSE(pool_.take({.port = 8000}, IfDead::kLost, start_));
  EXPECT_TRUE(pool_.take({.port = kAgentPort}, IfDead::kLost, start_));
  EXPECT_FALSE(pool_.take({.port = kAgentPort}, IfDead::kLost, start_));
  EXPECT_EQ(budget_->used, 0u);
}

TEST_F(UpstreamPoolTest, TlsConnectionsAreForTheNameTheyWereMadeFor) {
  auto [connection, service] = make_connection();
  pool_.put({.port = 8000, .tls_name = "a.example"}, std::move(connection), start_);
  EXPECT_FALSE(pool_.take({.port = 8000}, IfDead::kLost, start_));
  EXPECT_FALSE(pool_.take({.port = 8000, .tls_name = ""}, IfDead::kLost, start_));
  EXPECT_FALSE(pool_.take({.port = 8000, .tls_name = "b.example"}, IfDead::kLost, start_));
  EXPECT_TRUE(pool_.take({.port = 8000, .tls_name = "a.example"}, IfDead::kLost, start_));
}

TEST_F(UpstreamPoolTest, OldConnectionsAreNotUsedAndSweptAway) {
  auto [agent, agent_end] = make_connection();
  auto [service, service_end] = make_connection();
  pool_.put({.port = kAgentPort}, std::move(agent), start_);
  pool_.put({.port = 8000}, std::move(service), start_);
  pool_.drop_expired(start_ + seconds(2));
  EXPECT_EQ(budget_->used, 2u);
  EXPECT_FALSE(pool_.take({.port = 8000}, IfDead::kLost, start_ + seconds(3)));
  EXPECT_EQ(budget_->used, 1u);
  pool_.drop_expired(start_ + seconds(29));
  EXPECT_EQ(budget_->used, 1u);
  pool_.drop_expired(start_ + seconds(30));
  EXPECT_TRUE(pool_.empty());
  EXPECT_EQ(budget_->used, 0u);
}

TEST_F(UpstreamPoolTest, DeadOrTalkativeConnectionsAreNotUsed) {
  auto [closed, closed_end] = make_connection();
  auto [talking, talking_end] = make_connection();
  auto [quiet, quiet_end] = make_connection();
  closed_end.reset();
  ASSERT_EQ(::send(talking_end.get(), "x", 1, 0), 1);
  pool_.put({.port = 8000}, std::move(quiet), start_);
  pool_.put({.port = 8000}, std::move(closed), start_);
  pool_.put({.port = 8000}, std::move(talking), start_);
  const auto taken = pool_.take({.port = 8000}, IfDead::kLost, start_);
  ASSERT_TRUE(taken);
  EXPECT_TRUE(pool_.empty());
}

TEST_F(UpstreamPoolTest, DeadOrTalkativeConnectionsAreNotUsedForWhatCanBeRepeatedEither) {
  auto [closed, closed_end] = make_connection();
  auto [talking, talking_end] = make_connection();
  closed_end.reset();
  ASSERT_EQ(::send(talking_end.get(), "x", 1, 0), 1);
  pool_.put({.port = 8000}, std::move(closed), start_);
  pool_.put({.port = 8000}, std::move(talking), start_);
  EXPECT_FALSE(pool_.take({.port = 8000}, IfDead::kRepeated, start_ + milliseconds(1)));
}

TEST_F(UpstreamPoolTest, TlsCannotBeLookedAtAndServesWhatCanBeRepeatedForAMoment) {
  for (const auto& [if_dead, age, expected] :
       {std::tuple(IfDead::kRepeated, milliseconds(1), true),
        std::tuple(IfDead::kRepeated, milliseconds(600), false),
        std::tuple(IfDead::kLost, milliseconds(1), false)}) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    const UniqueFd service(ends[1]);
    http::ClientConnection connection(
        std::make_unique<net::TlsClientStream>(loop_.get_executor(), UniqueFd(ends[0])));
    pool_.put({.port = 8000, .tls_name = ""}, std::move(connection), start_);
    const auto taken = pool_.take({.port = 8000, .tls_name = ""}, if_dead, start_ + age);
    EXPECT_EQ(taken.has_value(), expected) << age.count();
  }
}

TEST_F(UpstreamPoolTest, NumberIsLimitedForTheSandboxAndForTheLoop) {
  std::vector<UniqueFd> ends;
  for (size_t i = 0; i < UpstreamPool::kMostIdle + 5; ++i) {
    auto [connection, end] = make_connection();
    pool_.put({.port = 8000}, std::move(connection), start_);
    ends.push_back(std::move(end));
  }
  EXPECT_EQ(budget_->used, UpstreamPool::kMostIdle);
  budget_->most = budget_->used;
  UpstreamPool other(budget_);
  auto [connection, end] = make_connection();
  other.put({.port = 8000}, std::move(connection), start_);
  EXPECT_TRUE(other.empty());
  pool_.clear();
  EXPECT_EQ(budget_->used, 0u);
}

}  // namespace
}  // namespace alcove::gateway
