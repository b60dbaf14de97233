// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/ids.h"
#include "base/strings.h"
#include "relay/relay_client.h"
#include "relay/testing/test_network.h"
#include "sys/file_io.h"

namespace alcove::relay::testing {

// A relay of its own data directory in the test network's "host". Needs root.
class RelayFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    // For both ends of many connections in this process, and for the relay.
    rlimit descriptors{};
    ::getrlimit(RLIMIT_NOFILE, &descriptors);
    descriptors.rlim_max = std::max<rlim_t>(descriptors.rlim_max, 20'000);
    descriptors.rlim_cur = descriptors.rlim_max;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &descriptors), 0);
    data_dir_ = ::testing::TempDir() + "alcove-relay-" + random_alphanumeric(8);
    std::filesystem::create_directories(data_dir_ + "/log");
    net_ = std::make_unique<TestNetwork>();
    start_client();
  }

  void TearDown() override {
    if (client_) EXPECT_TRUE(client_->stop());
    client_.reset();
    expect_no_reports();
    std::error_code ignored;
    std::filesystem::remove_all(data_dir_, ignored);
  }

  // The relay dials from the network in which it is started.
  void start_client() {
    net_->host.run([&] {
      if (before_start_) before_start_();
      auto client = RelayClient::start({.program = ALCOVE_RELAY_PROGRAM,
                                        .data_dir = data_dir_,
                                        .resolvers = resolvers_,
                                        .timeout = timeout_,
                                        .check_every = check_every_});
      ASSERT_TRUE(client) << client.error().message();
      client_ = std::move(*client);
    });
  }

  void open_guest(network::EgressPolicy::Reach reach = network::EgressPolicy::Reach::kInternet) {
    const auto opened =
        client_->finish_open(client_->begin_open(id_, {reach}, net_->guest.shared()));
    ASSERT_TRUE(opened) << opened.error().message();
  }

  // Of a sanitizer that the relay was built with: they are in its log, and a relay that one ended
  // was replaced without a word to the test.
  void expect_no_reports() const {
    const auto log = sys::read_file(data_dir_ + "/log/relay.log");
    if (!log) return;
    for (const char* sign : {"Sanitizer", "runtime error: "}) {
      EXPECT_EQ(log->find(sign), std::string::npos) << *log;
    }
  }

  size_t relay_descriptors() const {
    // The socket of its last answer may still be open.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const std::filesystem::directory_iterator all(cat("/proc/", client_->pid(), "/fd"));
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }

  std::chrono::milliseconds relay_cpu() const {
    const auto stat = sys::read_file(cat("/proc/", client_->pid(), "/stat"));
    if (!stat) return {};
    const auto fields = split(std::string_view(*stat).substr(stat->rfind(')') + 2), ' ');
    const long ticks =
        parse_number<long>(fields[11]).value_or(0) + parse_number<long>(fields[12]).value_or(0);
    return std::chrono::milliseconds(ticks * 1000 / ::sysconf(_SC_CLK_TCK));
  }

  // The most memory that the relay ever had.
  size_t relay_peak_bytes() const {
    const auto status = sys::read_file(cat("/proc/", client_->pid(), "/status"));
    const size_t line = status ? status->find("VmHWM:") : std::string::npos;
    if (line == std::string::npos) return 0;
    const std::string_view value = trim(std::string_view(*status).substr(line + 6, 20));
    return parse_number<size_t>(value.substr(0, value.find(' '))).value_or(0) << 10;
  }

  template <typename Condition>
  static bool eventually(Condition condition,
                         std::chrono::seconds within = std::chrono::seconds(10)) {
    const auto deadline = std::chrono::steady_clock::now() + within;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return true;
  }

  const SandboxId id_ = make_sandbox_id();
  std::string data_dir_;
  std::vector<std::string> resolvers_;
  // Called on the thread that starts the relay: what it changes of its world, the relay has.
  std::function<void()> before_start_;
  std::chrono::milliseconds timeout_ = std::chrono::seconds(10);
  std::chrono::milliseconds check_every_ = std::chrono::seconds(5);
  std::unique_ptr<TestNetwork> net_;
  std::unique_ptr<RelayClient> client_;
};

}  // namespace alcove::relay::testing
