// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// The driver tells the relay of its sandboxes. What the relay does with them is tested in relay/.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>

#include "jail/testing/jail_fixture.h"
#include "network/guest_network.h"
#include "relay/relay_client.h"

namespace alcove::jail {
namespace {

using network::EgressPolicy;
using sandbox::Machine;

class JailEgressTest : public testing::JailFixture {
 protected:
  void SetUp() override {
    JailFixture::SetUp();
    if (!driver_) return;
    driver_.reset();
    start();
  }

  void TearDown() override {
    JailFixture::TearDown();
    if (relay_) EXPECT_TRUE(relay_->stop());
  }

  void start() {
    auto relay = relay::RelayClient::start(
        {.program = ALCOVE_RELAY_PROGRAM, .data_dir = data_dir_, .resolvers = {}});
    ASSERT_TRUE(relay) << relay.error().message();
    relay_ = std::move(*relay);
    start_driver();
  }

  // As a server that is replaced by the next one.
  void restart() {
    machines_.clear();
    driver_.reset();
    relay_.reset();
    start();
  }

  Machine* boot_with(EgressPolicy::Reach reach) {
    sandbox::BootSpec spec = make_spec();
    spec.egress.reach = reach;
    last_id_ = spec.id;
    return boot(spec);
  }

  // Whether the relay takes connections inside the sandbox.
  static bool is_open(Machine& machine) {
    const auto fd = machine.connect(network::kRelayPort, Machine::Family::kV4);
    if (!fd) return false;
    pollfd waiting{fd->get(), POLLOUT, 0};
    ::poll(&waiting, 1, 5000);
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd->get(), SOL_SOCKET, SO_ERROR, &error, &size);
    return error != ECONNREFUSED;
  }

  size_t relay_descriptors() const {
    // The socket of its last answer may still be open.
    ::usleep(50'000);
    const std::filesystem::directory_iterator all(cat("/proc/", relay_->pid(), "/fd"));
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }

  SandboxId last_id_;
};

TEST_F(JailEgressTest, ThePolicyIsInForceWhenBootReturns) {
  Machine* open = boot_with(EgressPolicy::Reach::kInternet);
  ASSERT_NE(open, nullptr);
  EXPECT_TRUE(is_open(*open));
  Machine* closed = boot_with(EgressPolicy::Reach::kNone);
  ASSERT_NE(closed, nullptr);
  EXPECT_FALSE(is_open(*closed));
}

TEST_F(JailEgressTest, TheRelayHoldsNothingOfADestroyedSandbox) {
  const size_t before = relay_descriptors();
  Machine* machine = boot_with(EgressPolicy::Reach::kInternet);
  ASSERT_NE(machine, nullptr);
  EXPECT_EQ(relay_descriptors(), before + 4);
  machine->kill();
  ASSERT_TRUE(machine->destroy());
  EXPECT_EQ(relay_descriptors(), before);
}

TEST_F(JailEgressTest, AFailedBootLeavesNothingInTheRelay) {
  const size_t before = relay_descriptors();
  sandbox::BootSpec spec = make_spec();
  spec.agent_path = data_dir_ + "/no-such-agent";
  EXPECT_FALSE(driver_->boot(spec));
  EXPECT_EQ(relay_descriptors(), before);
}

TEST_F(JailEgressTest, AdoptedSandboxesStayOpenAndOthersAreClosed) {
  const size_t before = relay_descriptors();
  Machine* kept = boot_with(EgressPolicy::Reach::kInternet);
  ASSERT_NE(kept, nullptr);
  const SandboxId kept_id = last_id_;
  const std::string record = kept->record();
  ASSERT_NE(boot_with(EgressPolicy::Reach::kInternet), nullptr);
  const pid_t pid = relay_->pid();
  restart();
  EXPECT_EQ(relay_->pid(), pid);
  auto adopted = driver_->adopt(kept_id, record);
  ASSERT_TRUE(adopted) << adopted.error().message();
  ASSERT_TRUE(driver_->sweep({kept_id}));
  EXPECT_EQ(relay_descriptors(), before + 4);
  EXPECT_TRUE(is_open(**adopted));
}

TEST_F(JailEgressTest, WithoutARelayASandboxIsTakenOverAndReachesNothing) {
  Machine* machine = boot_with(EgressPolicy::Reach::kInternet);
  ASSERT_NE(machine, nullptr);
  const std::string record = machine->record();
  restart();
  ASSERT_TRUE(relay_->stop());
  auto adopted = driver_->adopt(last_id_, record);
  ASSERT_TRUE(adopted) << adopted.error().message();
  EXPECT_FALSE(is_open(**adopted));
  adopted->reset();
  restart();
}

}  // namespace
}  // namespace alcove::jail
