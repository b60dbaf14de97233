// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <limits>
#include <memory>
#include <optional>

#include <boost/asio/io_context.hpp>

#include "base/clock.h"
#include "gateway/file_url_finder.h"
#include "gateway/flow.h"
#include "gateway/recent_starts.h"
#include "gateway/routing.h"
#include "gateway/waiting_requests.h"
#include "http/exchange.h"
#include "net/task.h"
#include "node/node.h"

namespace alcove::gateway {

struct GatewayOptions {
  // Shared by the gateways of all loops; must not be nullptr.
  std::shared_ptr<RecentStarts> recent_starts = std::make_shared<RecentStarts>();
  // Shared too; must not be nullptr.
  std::shared_ptr<WaitingRequests> waiting = std::make_shared<WaitingRequests>();
  // Shared too; nullptr: the gateway has one of its own.
  std::shared_ptr<FileUrlFinder> file_urls = {};
  // Outlives the gateway.
  const Clock* clock = nullptr;
  // How long a switched connection is held of which one end has closed and the other is silent.
  std::chrono::milliseconds tunnel_linger = std::chrono::minutes(10);
  // A stream that is silent for so long, or up to twice, gives back the buffer of its last burst:
  // thousands may be open.
  std::chrono::milliseconds silence = std::chrono::seconds(1);
  // See DialOptions.
  int descriptor_limit = std::numeric_limits<int>::max();
};

// Passes requests on to ports of sandboxes. One per event loop; it is used on that loop only, and
// destroyed there or while the loop does not run. Requests under way are interrupted then.
class Gateway {
 public:
  // A closed port is answered at once, unless something in the sandbox may be about to open it:
  // then it is tried again for a second. That is the case for so long after a command was started
  // through the gateway (any loop), got input or has ended ...
  static constexpr std::chrono::seconds kAfterCommand{10};
  // ... and after the sandbox itself was started.
  static constexpr std::chrono::seconds kAfterBoot{2};

  Gateway(boost::asio::io_context& loop, node::Node& node, GatewayOptions options = {});
  ~Gateway();
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  // Answers a request whose route is not the API.
  Task<void> handle(http::Exchange& exchange, Route route);

  size_t idle_connections() const { return state_->table->idle_connections(); }
  size_t large_buffers() const { return state_->buffers->large_in_use(); }

 private:
  Task<void> forward(http::Exchange& exchange, ToSandbox destination);
  Task<void> forward_file_url(http::Exchange& exchange);
  // The answer for a request that is not passed on.
  std::optional<http::Response> refuse(const http::RequestHead& request,
                                       const node::LiveSandboxPtr& sandbox,
                                       const ToSandbox& destination) const;
  Patience patience_for(const store::Sandbox& sandbox) const;

  node::Node& node_;
  std::shared_ptr<LoopState> state_;
  std::shared_ptr<FileUrlFinder> file_urls_;
  SystemClock system_clock_;
  const Clock& clock_;
};

}  // namespace alcove::gateway
