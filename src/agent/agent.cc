// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/agent.h"

#include <chrono>
#include <utility>

#include "agent/access.h"
#include "agent/cors.h"
#include "agent/init_message.h"
#include "agent/json_map.h"
#include "agent/rest.h"
#include "connect/connect.h"
#include "net/event_loops.h"

namespace alcove::agent {
namespace {

constexpr uint64_t kMaxInitBody = 4ull << 20;
// Longer than a pool thread lingers and ended processes are kept, so that their memory is free.
constexpr std::chrono::seconds kQuietTime = ProcessTable::kRetention + std::chrono::seconds(5);

constexpr std::string_view kProcessPrefix = "/process.Process/";
constexpr std::string_view kFilesystemPrefix = "/filesystem.Filesystem/";

// An unknown Basic user: an end-of-stream error for streaming calls, else 401 in Connect's shape.
Task<void> refuse_user(http::Exchange& exchange, Error error) {
  co_await connect::respond_error(exchange, connect::call_shape(exchange.request()), error);
}

Task<void> refuse_method(http::Exchange& exchange, std::string allowed) {
  http::Response response = text_response(405, "method not allowed");
  response.headers.add("Allow", std::move(allowed));
  (void)co_await exchange.respond(std::move(response));
}

http::Response json_response(std::string body) {
  http::Response response;
  response.headers = {{"Content-Type", "application/json"}, {"Cache-Control", "no-store"}};
  response.body = std::move(body);
  return response;
}

}  // namespace

Result<std::unique_ptr<Agent>> Agent::create(boost::asio::io_context& loop, AgentOptions options) {
  ALCOVE_TRY_ASSIGN(auto reaper, ChildReaper::create(loop.get_executor()));
  auto agent = std::unique_ptr<Agent>(new Agent(loop, std::move(options), std::move(reaper)));
  net::spawn(loop, agent->reaper_->run());
  return agent;
}

Agent::Agent(boost::asio::io_context& loop, AgentOptions options,
             std::unique_ptr<ChildReaper> reaper)
    : reaper_(std::move(reaper)),
      state_(std::move(options.identity_directory), std::move(options.path_variable)),
      processes_(loop.get_executor(), *reaper_, spawn_pools_),
      process_service_(state_, users_, processes_),
      filesystem_service_(loop.get_executor(), state_, users_, file_pools_),
      files_service_(state_, users_, file_pools_),
      memory_saver_(loop.get_executor(), kQuietTime),
      server_(loop, [this](http::Exchange& exchange) { return handle(exchange); }),
      loop_(loop) {}

void Agent::keep_interpreter(std::string program, UniqueFd listener) {
  interpreter_.emplace(loop_.get_executor(), *reaper_, std::move(program), std::move(listener));
}

Task<void> Agent::handle(http::Exchange& plain_exchange) {
  memory_saver_.touch();
  if (auto preflight = preflight_response(plain_exchange.request())) {
    (void)co_await plain_exchange.respond(*std::move(preflight));
    co_return;
  }
  CorsExchange exchange(plain_exchange);
  const http::RequestHead& request = exchange.request();
  if (!is_token_exempt(request.method, request.path())) {
    if (const auto allowed = check_token(request.headers, state_.access_token()); !allowed) {
      co_await respond_rest_error(exchange, 401, allowed.error().message());
      co_return;
    }
  }
  auto user = basic_user(request.headers);
  if (user) {
    if (const auto known = users_.find(*user); !known) {
      co_await refuse_user(exchange, known.error());
      co_return;
    }
  }
  co_await route(exchange, std::move(user));
}

Task<void> Agent::route(http::Exchange& exchange, std::optional<std::string> user) {
  const std::string_view path = exchange.request().path();
  const std::string_view method = exchange.request().method;
  if (path.starts_with(kProcessPrefix)) {
    co_await process_service_.handle(exchange, path.substr(kProcessPrefix.size()), std::move(user));
  } else if (path.starts_with(kFilesystemPrefix)) {
    co_await filesystem_service_.handle(exchange, path.substr(kFilesystemPrefix.size()),
                                        std::move(user));
  } else if (path == "/files") {
    if (method == "GET") {
      co_await files_service_.download(exchange);
    } else if (method == "POST") {
      co_await files_service_.upload(exchange);
    } else {
      co_await refuse_method(exchange, "GET, POST");
    }
  } else if (path == "/files/compose") {
    if (method == "POST") {
      co_await files_service_.compose(exchange);
    } else {
      co_await refuse_method(exchange, "POST");
    }
  } else if (path == "/health") {
    if (method != "GET") {
      co_await refuse_method(exchange, "GET");
      co_return;
    }
    http::Response response;
    response.status = 204;
    response.headers = {{"Cache-Control", "no-store"}};
    (void)co_await exchange.respond(std::move(response));
  } else if (path == "/init") {
    if (method == "POST") {
      co_await init(exchange);
    } else {
      co_await refuse_method(exchange, "POST");
    }
  } else if (path == "/envs") {
    if (method == "GET") {
      co_await envs(exchange);
    } else {
      co_await refuse_method(exchange, "GET");
    }
  } else if (path == "/journal") {
    if (method == "GET") {
      co_await journal(exchange);
    } else {
      co_await refuse_method(exchange, "GET");
    }
  } else if (path == "/metrics") {
    if (method == "GET") {
      (void)co_await exchange.respond(json_response(metrics_.read()));
    } else {
      co_await refuse_method(exchange, "GET");
    }
  } else {
    (void)co_await exchange.respond(text_response(404, "404 page not found"));
  }
}

Task<void> Agent::init(http::Exchange& exchange) {
  http::Response response;
  response.headers = {{"Cache-Control", "no-store"}, {"X-Envd-Version", std::string(kEnvdVersion)}};
  const auto body = co_await exchange.body().read_all(kMaxInitBody);
  if (!body) co_return;
  const auto request = decode_init(*body);
  if (!request) {
    response.status = 400;
    (void)co_await exchange.respond(std::move(response));
    co_return;
  }
  const auto control = exchange.request().headers.get(kControlHeader);
  if (const auto allowed = state_.authorize_init(*request, control); !allowed) {
    response.status = 401;
    response.headers.add("Content-Type", "text/plain; charset=utf-8");
    response.body = allowed.error().message();
    (void)co_await exchange.respond(std::move(response));
    co_return;
  }
  state_.apply(*request);
  if (interpreter_) {
    if (const auto root = users_.find("root")) interpreter_->start(state_.environment(*root, {}));
  }
  response.status = 204;
  (void)co_await exchange.respond(std::move(response));
}

Task<void> Agent::envs(http::Exchange& exchange) {
  std::string body;
  append_json_map(body, state_.global_variables());
  (void)co_await exchange.respond(json_response(std::move(body)));
}

Task<void> Agent::journal(http::Exchange& exchange) {
  const auto control = exchange.request().headers.get(kControlHeader);
  if (const auto allowed = state_.authorize_control(control); !allowed) {
    co_await respond_rest_error(exchange, 401, allowed.error().message());
    co_return;
  }
  std::string body = encode_journal(processes_.journal().lines());
  (void)co_await exchange.respond(json_response(std::move(body)));
}

}  // namespace alcove::agent
