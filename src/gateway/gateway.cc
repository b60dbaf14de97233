// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/gateway.h"

#include <utility>

#include "base/assert.h"
#include "gateway/access.h"
#include "gateway/client_network.h"
#include "gateway/error_page.h"
#include "gateway/shared_origin.h"
#include "gateway/target.h"

namespace alcove::gateway {
namespace {

// The interpreter's port: user code runs behind it too.
constexpr uint16_t kInterpreterPort = 49999;

std::string_view service_path(const http::RequestHead& request, const ToSandbox& destination) {
  return split_target(request.target).path().substr(destination.prefix.size());
}

// Running a command or code, or giving a shell its next line starts something.
Effect effect_of(const http::RequestHead& request, const ToSandbox& destination) {
  if (request.method != "POST") return Effect::kNone;
  const std::string_view path = service_path(request, destination);
  if (destination.port == kInterpreterPort && path == "/execute") return Effect::kStarts;
  if (destination.port != kAgentPort) return Effect::kNone;
  const bool starts = path == "/process.Process/Start" || path == "/process.Process/SendInput" ||
                      path == "/process.Process/StreamInput";
  return starts ? Effect::kStarts : Effect::kNone;
}

}  // namespace

Gateway::Gateway(boost::asio::io_context& loop, node::Node& node, GatewayOptions options)
    : node_(node),
      state_(std::make_shared<LoopState>(
          LoopState{.executor = loop.get_executor(),
                    .table = std::make_shared<TrafficTable>(loop.get_executor()),
                    .buffers = std::make_shared<BufferPool>(),
                    .patrol = std::make_shared<Patrol>(loop.get_executor()),
                    .silence = std::make_shared<Patrol>(loop.get_executor(), options.silence),
                    .recent_starts = std::move(options.recent_starts),
                    .waiting = std::move(options.waiting),
                    .tunnel_linger = options.tunnel_linger,
                    .descriptor_limit = options.descriptor_limit})),
      file_urls_(options.file_urls ? std::move(options.file_urls)
                                   : std::make_shared<FileUrlFinder>(node)),
      clock_(options.clock != nullptr ? *options.clock : system_clock_) {}

Gateway::~Gateway() { state_->table->close(); }

Task<void> Gateway::handle(http::Exchange& exchange, Route route) {
  if (auto* destination = std::get_if<ToSandbox>(&route)) {
    co_return co_await forward(exchange, std::move(*destination));
  }
  if (const auto* refusal = std::get_if<Refusal>(&route)) {
    (void)co_await exchange.respond(make_plain_text(refusal->status, refusal->text));
    co_return;
  }
  ALCOVE_ASSERT(std::holds_alternative<ToFileUrl>(route));
  co_await forward_file_url(exchange);
}

Task<void> Gateway::forward_file_url(http::Exchange& exchange) {
  const auto id = file_urls_->find(exchange.request(), client_network(exchange.peer_address()),
                                   std::chrono::steady_clock::now());
  if (id)
    co_return co_await forward(exchange, ToSandbox{.id = *id, .port = kAgentPort, .prefix = {}});
  http::Response refusal = make_error(401, "no running sandbox signed this URL");
  if (id.error() == FileUrlFinder::Miss::kTooOften) {
    refusal = make_error(429, "too many file URLs that are not valid");
    refusal.headers.set("Retry-After", "1");
  }
  (void)co_await exchange.respond(std::move(refusal));
}

Task<void> Gateway::forward(http::Exchange& exchange, ToSandbox destination) {
  const http::RequestHead& request = exchange.request();
  const node::LiveSandboxPtr sandbox = node_.find(destination.id);
  if (auto refusal = refuse(request, sandbox, destination)) {
    if (!destination.prefix.empty()) add_shared_policy(refusal->headers);
    (void)co_await exchange.respond(*std::move(refusal));
    co_return;
  }
  const Effect effect = effect_of(request, destination);
  Flow flow(state_, exchange, state_->table->get(sandbox), std::move(destination),
            effect == Effect::kStarts ? Patience::kStarting : patience_for(sandbox->record()),
            effect);
  co_await flow.run();
}

std::optional<http::Response> Gateway::refuse(const http::RequestHead& request,
                                              const node::LiveSandboxPtr& sandbox,
                                              const ToSandbox& destination) const {
  if (!sandbox || !sandbox->running()) {
    const bool unclear = node_.find_unclear(destination.id).has_value();
    return make_error_page(unclear ? Trouble::kSandboxUnclear : Trouble::kSandboxNotFound, request,
                           destination.id, destination.port);
  }
  if (!destination.prefix.empty()) {
    if (auto refusal = refuse_shared(request, destination.prefix)) return refusal;
  }
  return refuse_access(request, service_path(request, destination), sandbox->record(),
                       destination.port);
}

Patience Gateway::patience_for(const store::Sandbox& sandbox) const {
  const bool starting =
      state_->recent_starts->within(sandbox.id, std::chrono::steady_clock::now(), kAfterCommand) ||
      clock_.now() - sandbox.started_at < kAfterBoot;
  return starting ? Patience::kStarting : Patience::kNone;
}

}  // namespace alcove::gateway
