// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// Lives and deaths of relay and server.
#include "relay/relay_client.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/sanitized.h"
#include "relay/control_messages.h"
#include "relay/relay_socket.h"
#include "relay/testing/relay_fixture.h"
#include "sys/message.h"
#include "sys/process.h"

namespace alcove::relay::testing {
namespace {

using namespace std::chrono_literals;
using Reach = network::EgressPolicy::Reach;

class RelayLife : public RelayFixture {
 protected:
  struct Pair {
    Attempt client;
    UniqueFd server;
  };

  void SetUp() override {
    RelayFixture::SetUp();
    if (!net_) return;
    listener_ = listen_in(net_->internet, to_);
    open_guest();
  }

  Pair connect() {
    Pair pair{connect_in(net_->guest, to_, 3s), {}};
    if (pair.client.error == 0) pair.server = accept_from(listener_);
    return pair;
  }

  static void expect_works(const Pair& pair) {
    ASSERT_EQ(pair.client.error, 0);
    ASSERT_TRUE(send_text(pair.client.fd, "ping"));
    EXPECT_EQ(receive_text(pair.server, 4), "ping");
    ASSERT_TRUE(send_text(pair.server, "pong"));
    EXPECT_EQ(receive_text(pair.client.fd, 4), "pong");
  }

  static bool alive(pid_t pid) { return ::kill(pid, 0) == 0; }

  const network::Endpoint to_ = endpoint("198.51.100.7", 80);
  UniqueFd listener_;
};

TEST_F(RelayLife, AKilledRelayIsBackWithinASecond) {
  const Pair before = connect();
  expect_works(before);
  const pid_t killed = client_->pid();
  ::kill(killed, SIGKILL);
  // The old connection has ended, on both sides.
  EXPECT_EQ(receive_text(before.server, 1).substr(0, 6), "");
  EXPECT_NE(receive_text(before.client.fd, 1), "x");
  ASSERT_TRUE(eventually([&] { return client_->pid() > 0 && client_->pid() != killed; }));
  // A connect that began in the gap succeeds with the next try of the program's kernel, after 1 s.
  const Pair after = connect();
  expect_works(after);
  EXPECT_LT(after.client.took, 2s);
  // Its parent has taken note.
  EXPECT_FALSE(std::filesystem::exists(cat("/proc/", killed)));
}

TEST_F(RelayLife, WithoutARelayNothingLeaves) {
  ASSERT_TRUE(client_->stop());
  EXPECT_EQ(connect_in(net_->guest, to_, 300ms).error, ETIMEDOUT);
  const UniqueFd server = bind_datagrams_in(net_->internet, to_);
  const UniqueFd datagrams = datagrams_in(net_->guest, to_);
  (void)send_text(datagrams, "x");
  EXPECT_EQ(receive_text(datagrams, 1), "(error 113)");  // EHOSTUNREACH
}

TEST_F(RelayLife, ConnectionsLiveOnOverARestartOfTheServer) {
  const Pair connection = connect();
  const pid_t relay = client_->pid();
  client_.reset();
  expect_works(connection);
  expect_works(connect());
  start_client();
  EXPECT_EQ(client_->pid(), relay);
  open_guest();
  ASSERT_TRUE(client_->keep_only({id_}));
  expect_works(connection);
}

TEST_F(RelayLife, WhatANewServerDoesNotKnowIsClosed) {
  const Pair connection = connect();
  client_.reset();
  start_client();
  ASSERT_TRUE(client_->keep_only({}));
  EXPECT_EQ(receive_text(connection.client.fd, 1), "(error 104)");  // ECONNRESET
  EXPECT_EQ(connect_in(net_->guest, to_, 300ms).error, ETIMEDOUT);
}

TEST_F(RelayLife, ManyForgottenSandboxesAreClosed) {
  const size_t before = relay_descriptors();
  // More than one page of the relay's list.
  for (size_t i = 0; i < kListingSize + 100; ++i) {
    ASSERT_TRUE(client_->finish_open(
        client_->begin_open(make_sandbox_id(), {Reach::kNone}, net_->guest.shared())));
  }
  EXPECT_GE(relay_descriptors(), before + kListingSize + 100);
  client_.reset();
  start_client();
  open_guest();
  ASSERT_TRUE(client_->keep_only({id_}));
  EXPECT_EQ(relay_descriptors(), before);
  expect_works(connect());
}

TEST_F(RelayLife, CloseEndsConnectionsAndFreesDescriptors) {
  const size_t before = relay_descriptors();
  const Pair connection = connect();
  client_->close(id_);
  EXPECT_EQ(receive_text(connection.client.fd, 1), "(error 104)");
  EXPECT_TRUE(eventually([&] { return relay_descriptors() == before - 4; }))
      << relay_descriptors() << " of " << before;
}

TEST_F(RelayLife, ANewPolicyCutsWhatItDoesNotAllow) {
  const Pair connection = connect();
  open_guest(Reach::kNone);
  EXPECT_EQ(receive_text(connection.client.fd, 1), "(error 104)");
  EXPECT_EQ(connect_in(net_->guest, to_).error, EHOSTUNREACH);
  open_guest(Reach::kInternet);
  expect_works(connect());
}

TEST_F(RelayLife, StopEndsTheProcess) {
  const pid_t relay = client_->pid();
  ASSERT_TRUE(client_->stop());
  EXPECT_FALSE(alive(relay));
  // Opening is refused, and nothing starts it again.
  EXPECT_FALSE(client_->finish_open(
      client_->begin_open(make_sandbox_id(), {Reach::kInternet}, net_->guest.shared())));
}

TEST_F(RelayLife, ItHasFewPrivileges) {
  const auto status = sys::read_file(cat("/proc/", client_->pid(), "/status"));
  ASSERT_TRUE(status);
  // SYS_ADMIN, NET_RAW, NET_ADMIN, NET_BIND_SERVICE.
  for (const char* line :
       {"CapEff:\t0000000000203400\n", "CapPrm:\t0000000000203400\n", "CapBnd:\t0000000000203400\n",
        "CapInh:\t0000000000000000\n", "NoNewPrivs:\t1\n", "Threads:\t1\n"}) {
    EXPECT_NE(status->find(line), std::string::npos) << line << *status;
  }
  EXPECT_EQ(std::filesystem::read_symlink(cat("/proc/", client_->pid(), "/cwd")), "/");
}

// A relay that dies once and is too busy once, as a process of its own: it may be killed.
[[noreturn]] void be_troubled_relay(const std::string& data_dir, int ready) {
  ::alarm(30);
  const auto listener = listen_for_servers(data_dir);
  if (!listener) ::_exit(2);
  ::fcntl(listener->get(), F_SETFL, 0);
  std::vector<sys::Message> unanswered;
  (void)::eventfd_write(ready, 1);
  for (int connection = 1; connection <= 3; ++connection) {
    const UniqueFd server(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
    for (;;) {
      auto message = sys::receive_message(server.get());
      if (!message) break;
      const auto answer = [&](const Answer& body) {
        (void)sys::send_message(message->fds.front().get(), encode(body), {});
      };
      if (std::holds_alternative<Hello>(*decode_request(message->bytes))) {
        answer(Welcome{});
      } else if (connection != 2) {
        answer(Done{});
        if (connection == 1) break;
        ::_exit(0);
      } else {
        unanswered.push_back(std::move(*message));
      }
    }
  }
  ::_exit(1);
}

TEST(RelayTrouble, SandboxesThatANewRelayWasNotToldOfAreToldAgain) {
  const std::string data_dir = ::testing::TempDir() + "alcove-relay-" + random_alphanumeric(8);
  std::filesystem::create_directories(data_dir);
  const UniqueFd ready(::eventfd(0, EFD_CLOEXEC));
  const pid_t relay = ::fork();
  if (relay == 0) be_troubled_relay(data_dir, ready.get());
  eventfd_t told = 0;
  ASSERT_EQ(::eventfd_read(ready.get(), &told), 0);
  {
    auto client = RelayClient::start(
        {.program = data_dir + "/none", .data_dir = data_dir, .resolvers = {}, .timeout = 300ms});
    ASSERT_TRUE(client) << client.error().message();
    const auto netns = std::make_shared<const UniqueFd>(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    EXPECT_TRUE((*client)->finish_open(
        (*client)->begin_open(make_sandbox_id(), {Reach::kInternet}, netns)));
    const auto pidfd = sys::open_pidfd(relay);
    ASSERT_TRUE(pidfd);
    EXPECT_TRUE(sys::wait_by_pidfd(pidfd->get(), std::chrono::steady_clock::now() + 10s));
    ::kill(relay, SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(relay, &status, 0), relay);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  std::filesystem::remove_all(data_dir);
}

// A replacement that has no room for the sandbox at first, and then does.
[[noreturn]] void be_crowded_relay(const std::string& data_dir, int ready) {
  ::alarm(30);
  const auto listener = listen_for_servers(data_dir);
  if (!listener) ::_exit(2);
  ::fcntl(listener->get(), F_SETFL, 0);
  (void)::eventfd_write(ready, 1);
  int opens = 0;
  for (;;) {
    const UniqueFd server(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
    for (;;) {
      const auto message = sys::receive_message(server.get());
      if (!message) break;
      const auto answer = [&](const Answer& body) {
        (void)sys::send_message(message->fds.front().get(), encode(body), {});
      };
      if (std::holds_alternative<Hello>(*decode_request(message->bytes))) {
        answer(Welcome{});
        continue;
      }
      ++opens;
      if (opens == 2) {
        answer(Full{"crowded"});
      } else if (opens == 3) {
        answer(Failed{"troubled"});
      } else {
        answer(Done{});
      }
      if (opens == 1) break;
      if (opens == 4) ::_exit(0);
    }
  }
}

TEST(RelayTrouble, SandboxesThatANewRelayCouldNotOpenAreTriedAgain) {
  const std::string data_dir = ::testing::TempDir() + "alcove-relay-" + random_alphanumeric(8);
  std::filesystem::create_directories(data_dir);
  const UniqueFd ready(::eventfd(0, EFD_CLOEXEC));
  const pid_t relay = ::fork();
  if (relay == 0) be_crowded_relay(data_dir, ready.get());
  eventfd_t told = 0;
  ASSERT_EQ(::eventfd_read(ready.get(), &told), 0);
  {
    auto client = RelayClient::start({.program = data_dir + "/none",
                                      .data_dir = data_dir,
                                      .resolvers = {},
                                      .check_every = 100ms});
    ASSERT_TRUE(client) << client.error().message();
    const auto netns = std::make_shared<const UniqueFd>(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    EXPECT_TRUE((*client)->finish_open(
        (*client)->begin_open(make_sandbox_id(), {Reach::kInternet}, netns)));
    const auto pidfd = sys::open_pidfd(relay);
    ASSERT_TRUE(pidfd);
    EXPECT_TRUE(sys::wait_by_pidfd(pidfd->get(), std::chrono::steady_clock::now() + 10s));
    ::kill(relay, SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(relay, &status, 0), relay);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  std::filesystem::remove_all(data_dir);
}

// A relay that says who it is and dies of the first sandbox, again and again. Counts its lives.
[[noreturn]] void be_dying_relay(const std::string& data_dir, int lives) {
  ::alarm(30);
  const auto listener = listen_for_servers(data_dir);
  if (!listener) ::_exit(2);
  ::fcntl(listener->get(), F_SETFL, 0);
  (void)::eventfd_write(lives, 1);
  for (;;) {
    const UniqueFd server(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
    const auto hello = sys::receive_message(server.get());
    if (!hello) continue;
    (void)sys::send_message(hello->fds.front().get(), encode(Answer(Welcome{})), {});
    (void)::eventfd_write(lives, 1);
    (void)sys::receive_message(server.get());
  }
}

TEST(RelayTrouble, OneThatDiesOfItsStartIsNotStartedWithoutPause) {
  const std::string data_dir = ::testing::TempDir() + "alcove-relay-" + random_alphanumeric(8);
  std::filesystem::create_directories(data_dir);
  const UniqueFd lives(::eventfd(0, EFD_CLOEXEC));
  const pid_t relay = ::fork();
  if (relay == 0) be_dying_relay(data_dir, lives.get());
  eventfd_t count = 0;
  ASSERT_EQ(::eventfd_read(lives.get(), &count), 0);
  {
    auto client = RelayClient::start(
        {.program = data_dir + "/none", .data_dir = data_dir, .resolvers = {}, .timeout = 300ms});
    ASSERT_TRUE(client) << client.error().message();
    const auto netns = std::make_shared<const UniqueFd>(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    EXPECT_FALSE((*client)->finish_open(
        (*client)->begin_open(make_sandbox_id(), {Reach::kInternet}, netns)));
    std::this_thread::sleep_for(3s);
    ASSERT_EQ(::eventfd_read(lives.get(), &count), 0);
    // After 0.25, 0.5, 1, 2 s; the first tries come soon, but not one after the other.
    EXPECT_GE(count, 3u);
    EXPECT_LE(count, 6u);
    // There is no connection to it; it is ended all the same.
    EXPECT_TRUE((*client)->stop());
    EXPECT_EQ(::waitpid(relay, nullptr, WNOHANG), relay);
  }
  std::filesystem::remove_all(data_dir);
}

class SlowRelay : public RelayFixture {
 protected:
  SlowRelay() { timeout_ = 1s; }
};

TEST_F(SlowRelay, IsReplaced) {
  open_guest();
  const pid_t stuck = client_->pid();
  ::kill(stuck, SIGSTOP);
  EXPECT_TRUE(client_->keep_only({id_}));
  EXPECT_NE(client_->pid(), stuck);
  const UniqueFd listener = listen_in(net_->internet, endpoint("198.51.100.7", 80));
  EXPECT_EQ(connect_in(net_->guest, endpoint("198.51.100.7", 80)).error, 0);
}

TEST_F(SlowRelay, HoldsUpACreateOnce) {
  ::kill(client_->pid(), SIGSTOP);
  const auto begin = std::chrono::steady_clock::now();
  open_guest();
  // Not asked a second time before it is replaced.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1900ms);
}

class WatchedRelay : public RelayFixture {
 protected:
  WatchedRelay() {
    timeout_ = 500ms;
    check_every_ = 200ms;
  }
};

TEST_F(WatchedRelay, ThatHangsIsReplacedAlthoughNobodyAsksForAnything) {
  open_guest();
  const pid_t stuck = client_->pid();
  std::this_thread::sleep_for(1s);
  EXPECT_EQ(client_->pid(), stuck);
  ::kill(stuck, SIGSTOP);
  EXPECT_TRUE(eventually([&] { return client_->pid() > 0 && client_->pid() != stuck; }));
  const UniqueFd listener = listen_in(net_->internet, endpoint("198.51.100.7", 80));
  EXPECT_EQ(connect_in(net_->guest, endpoint("198.51.100.7", 80)).error, 0);
}

TEST_F(WatchedRelay, OpensWhatItHadNoRoomForWhenItHas) {
  if constexpr (kSanitized) {
    GTEST_SKIP() << "the sanitizer needs a pipe to look at a type, and takes its lack for a fault";
  }
  const UniqueFd listener = listen_in(net_->internet, endpoint("198.51.100.7", 80));
  const pid_t relay = client_->pid();
  rlimit normal{};
  ASSERT_EQ(::prlimit(relay, RLIMIT_NOFILE, nullptr, &normal), 0);
  const rlimit low{.rlim_cur = relay_descriptors(), .rlim_max = normal.rlim_max};
  ASSERT_EQ(::prlimit(relay, RLIMIT_NOFILE, &low, nullptr), 0);
  const SandboxId ended = make_sandbox_id();
  for (const SandboxId& id : {id_, ended}) {
    const auto opened =
        client_->finish_open(client_->begin_open(id, {Reach::kInternet}, net_->guest.shared()));
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code(), Code::kResourceExhausted) << opened.error().message();
  }
  client_->close(ended);
  ASSERT_EQ(::prlimit(relay, RLIMIT_NOFILE, &normal, nullptr), 0);
  EXPECT_TRUE(eventually(
      [&] { return connect_in(net_->guest, endpoint("198.51.100.7", 80), 1s).error == 0; }));
  EXPECT_EQ(client_->pid(), relay);
}

}  // namespace
}  // namespace alcove::relay::testing
