// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/sandbox_traffic.h"

#include <utility>

#include <boost/asio/post.hpp>

namespace alcove::gateway {
namespace {

constexpr std::chrono::seconds kSweepInterval{1};

}  // namespace

void SandboxTraffic::end() {
  ended_ = true;
  idle_.clear();
  // Told one by one from the front: a request may leave the list while it is told.
  Requests told;
  told.swap(requests_);
  while (!told.empty()) {
    Interruptible& request = told.front();
    told.pop_front();
    request.sandbox_ended();
  }
}

TrafficTable::TrafficTable(boost::asio::any_io_executor executor)
    : executor_(std::move(executor)), sweep_timer_(executor_) {}

std::shared_ptr<SandboxTraffic> TrafficTable::get(const node::LiveSandboxPtr& sandbox) {
  const auto found = entries_.find(sandbox.get());
  if (found != entries_.end()) return found->second.traffic;

  auto traffic = std::make_shared<SandboxTraffic>(sandbox, budget_);
  Entry& entry = entries_[sandbox.get()];
  entry.traffic = traffic;
  // Comes on any thread, perhaps before on_end() returns: the work is done on the loop.
  entry.registration =
      sandbox->on_end([executor = executor_, weak = weak_from_this(), key = sandbox.get()] {
        boost::asio::post(executor, [weak, key] {
          if (const auto self = weak.lock()) self->sandbox_ended(key);
        });
      });
  return traffic;
}

void TrafficTable::sandbox_ended(const node::LiveSandbox* sandbox) {
  const auto found = entries_.find(sandbox);
  if (found == entries_.end()) return;
  const std::shared_ptr<SandboxTraffic> traffic = std::move(found->second.traffic);
  entries_.erase(found);
  traffic->end();
}

void TrafficTable::keep(SandboxTraffic& traffic, const Destination& to,
                        http::ClientConnection connection) {
  if (!traffic.running()) return;
  traffic.idle().put(to, std::move(connection), std::chrono::steady_clock::now());
  schedule_sweep();
}

size_t TrafficTable::drop_idle() {
  const size_t dropped = budget_->used;
  for (auto& [sandbox, entry] : entries_) entry.traffic->idle().clear();
  return dropped;
}

void TrafficTable::close() {
  auto entries = std::move(entries_);
  entries_.clear();
  for (auto& [sandbox, entry] : entries) {
    entry.traffic->sandbox()->forget_end(entry.registration);
    entry.traffic->end();
  }
  sweep_timer_.cancel();
}

void TrafficTable::schedule_sweep() {
  if (sweeping_ || budget_->used == 0) return;
  sweeping_ = true;
  sweep_timer_.expires_after(kSweepInterval);
  sweep_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (error || !self) return;
    self->sweeping_ = false;
    self->sweep();
  });
}

void TrafficTable::sweep() {
  const auto now = std::chrono::steady_clock::now();
  for (auto& [sandbox, entry] : entries_) {
    if (!entry.traffic->idle().empty()) entry.traffic->idle().drop_expired(now);
  }
  schedule_sweep();
}

}  // namespace alcove::gateway
