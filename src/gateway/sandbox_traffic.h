// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <memory>
#include <unordered_map>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/intrusive/list.hpp>

#include "gateway/ingress.h"
#include "gateway/upstream_pool.h"
#include "node/node.h"

namespace alcove::gateway {

// A request under way. Takes itself off the list when it is destroyed.
class Interruptible : public boost::intrusive::list_base_hook<
                          boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  virtual void sandbox_ended() = 0;

 protected:
  ~Interruptible() = default;
};

// What one loop has to do with one sandbox: the requests under way and the idle connections.
class SandboxTraffic {
 public:
  SandboxTraffic(node::LiveSandboxPtr sandbox, std::shared_ptr<IdleBudget> budget)
      : sandbox_(std::move(sandbox)),
        ingress_(parse_ingress(sandbox_->record().network_json)),
        idle_(std::move(budget)) {}

  const node::LiveSandboxPtr& sandbox() const { return sandbox_; }
  const Ingress& ingress() const { return ingress_; }
  UpstreamPool& idle() { return idle_; }

  // False from the moment the sandbox is killed, also before end() has run.
  bool running() const { return !ended_ && sandbox_->running(); }

  void add(Interruptible& request) { requests_.push_back(request); }
  // Interrupts every request and drops the connections.
  void end();

 private:
  using Requests =
      boost::intrusive::list<Interruptible, boost::intrusive::constant_time_size<false>>;

  node::LiveSandboxPtr sandbox_;
  const Ingress ingress_;
  UpstreamPool idle_;
  Requests requests_;
  bool ended_ = false;
};

// The sandboxes that one loop has seen traffic for. The loop outlives it; it is made, used and
// destroyed on that loop (or while the loop does not run).
class TrafficTable : public std::enable_shared_from_this<TrafficTable> {
 public:
  explicit TrafficTable(boost::asio::any_io_executor executor);
  TrafficTable(const TrafficTable&) = delete;
  TrafficTable& operator=(const TrafficTable&) = delete;

  // Never nullptr. The sandbox's end is watched from the first call on.
  std::shared_ptr<SandboxTraffic> get(const node::LiveSandboxPtr& sandbox);

  // Keeps a connection for the next request to that place.
  void keep(SandboxTraffic& traffic, const Destination& to, http::ClientConnection connection);

  // Closes all idle connections; how many they were.
  size_t drop_idle();

  // Interrupts everything and watches nothing any more.
  void close();

  size_t idle_connections() const { return budget_->used; }

 private:
  struct Entry {
    std::shared_ptr<SandboxTraffic> traffic;
    uint64_t registration = 0;
  };

  void sandbox_ended(const node::LiveSandbox* sandbox);
  void schedule_sweep();
  void sweep();

  boost::asio::any_io_executor executor_;
  std::shared_ptr<IdleBudget> budget_ = std::make_shared<IdleBudget>();
  // By address: an id may come back (a sandbox that is resumed), an object cannot while we hold it.
  std::unordered_map<const node::LiveSandbox*, Entry> entries_;
  // Runs only while there are idle connections.
  boost::asio::steady_timer sweep_timer_;
  bool sweeping_ = false;
};

}  // namespace alcove::gateway
