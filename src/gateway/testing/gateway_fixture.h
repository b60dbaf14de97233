// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include <boost/asio/post.hpp>

#include "base/strings.h"
#include "gateway/gateway.h"
#include "gateway/testing/fake_sandbox.h"
#include "gateway/testing/raw_peer.h"
#include "http/server.h"
#include "net/event_loops.h"
#include "net/listener.h"

namespace alcove::gateway {

inline const SandboxId kOne("ione");
inline const SandboxId kTwo("itwo");
inline constexpr uint16_t kServicePort = 8000;

// A gateway on a loop of its own, two sandboxes behind it, and a service that the test plays.
class GatewayTest : public testing::Test {
 protected:
  GatewayTest() {
    clock_.set(WallTime(std::chrono::hours(24)));
    node_.add(one_);
    node_.add(two_);
    one_->open_port(kServicePort, service_.port());
    one_->open_port(kAgentPort, service_.port());
    two_->open_port(kServicePort, service_.port());
    two_->open_port(kAgentPort, service_.port());
    make_gateway();
    server_ = std::make_unique<http::Server>(loops_.loop(0), [this](http::Exchange& exchange) {
      return gateway_->handle(exchange, route(exchange.request(), {}));
    });
    auto listener = net::make_listener("127.0.0.1", /*port=*/0);
    port_ = net::local_port(*listener).value();
    (void)server_->serve(*std::move(listener));
    loops_.start();
  }
  ~GatewayTest() override { loops_.stop(); }

  // Before the loop runs, or on it, in place of the one that is there.
  void make_gateway(GatewayOptions options = {}) {
    options.clock = &clock_;
    gateway_ = std::make_unique<Gateway>(loops_.loop(0), node_, std::move(options));
  }

  static std::shared_ptr<FakeSandbox> make_sandbox(const SandboxId& id,
                                                   std::string network_json = {}) {
    store::Sandbox record;
    record.id = id;
    record.network_json = std::move(network_json);
    return std::make_shared<FakeSandbox>(std::move(record));
  }

  RawPeer connect() const { return RawPeer::connect_to(port_); }

  // A request to a port of a sandbox; `more` are further header lines.
  static std::string request(std::string_view line, uint16_t port = kServicePort,
                             std::string_view more = {}, const SandboxId& id = kOne) {
    return cat(line, " HTTP/1.1\r\nHost: ", port, "-", id.str(), ".example.org\r\n", more, "\r\n");
  }

  // Runs a function on the gateway's loop and returns its value.
  template <typename Function>
  auto on_loop(Function function) {
    std::packaged_task<decltype(function())()> task(std::move(function));
    auto future = task.get_future();
    boost::asio::post(loops_.loop(0), [&task] { task(); });
    return future.get();
  }

  void replace_gateway(GatewayOptions options) {
    on_loop([&] { make_gateway(std::move(options)); });
  }

  // A moment after the sandboxes were started: closed ports are tried for a second.
  void make_young() {
    on_loop([this] { clock_.set(one_->record().started_at + std::chrono::seconds(1)); });
  }

  // A connection is kept a moment after the client has its answer.
  void wait_for_idle(size_t count) {
    while (on_loop([this] { return gateway_->idle_connections(); }) != count) {
      std::this_thread::yield();
    }
  }

  FakeClock clock_;
  net::EventLoops loops_{1};
  FakeNode node_;
  RawService service_;
  std::shared_ptr<FakeSandbox> one_ = make_sandbox(kOne);
  std::shared_ptr<FakeSandbox> two_ = make_sandbox(kTwo);
  std::unique_ptr<Gateway> gateway_;
  std::unique_ptr<http::Server> server_;
  uint16_t port_ = 0;
};

}  // namespace alcove::gateway
