// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/service.h"

#include <memory>
#include <utility>

#include "base/strings.h"
#include "http/url.h"
#include "interpreter/ascii_json.h"
#include "interpreter/languages.h"
#include "interpreter/requests.h"
#include "interpreter/result_fields.h"
#include "net/event_loops.h"

namespace alcove::interpreter {
namespace {

constexpr uint64_t kMaxBody = 64ull << 20;
constexpr std::string_view kContexts = "/contexts";
constexpr std::string_view kRestart = "/restart";

// Any page may talk to a sandbox's port.
http::Headers fields(const http::Exchange& exchange, std::string_view content_type) {
  http::Headers headers;
  if (!content_type.empty()) headers.add("Content-Type", std::string(content_type));
  if (exchange.request().headers.has("Origin")) headers.add("Access-Control-Allow-Origin", "*");
  return headers;
}

Task<void> answer(http::Exchange& exchange, int status, std::string_view type, std::string body) {
  http::Response response;
  response.status = status;
  response.headers = fields(exchange, type);
  response.body = std::move(body);
  (void)co_await exchange.respond(std::move(response));
}

Task<void> answer_text(http::Exchange& exchange, int status, std::string text) {
  return answer(exchange, status, "text/plain; charset=utf-8", std::move(text));
}

Task<void> answer_json(http::Exchange& exchange, int status, std::string json) {
  return answer(exchange, status, "application/json", std::move(json));
}

Task<void> refuse_method(http::Exchange& exchange) {
  return answer_json(exchange, 405, R"({"detail":"Method Not Allowed"})");
}

Task<void> refuse_context(http::Exchange& exchange, const Error& error) {
  if (error.code() == Code::kInvalidArgument) return answer_text(exchange, 400, error.message());
  return answer_text(exchange, 500, cat("Failed to create context: ", error.message()));
}

Task<void> refuse_unknown(http::Exchange& exchange, const std::string& id) {
  return answer_text(exchange, 404, cat("Context ", id, " not found"));
}

void append_info(std::string& out, const Context::Info& info) {
  out += "{\"id\":";
  append_ascii_string(out, info.id);
  out += ",\"language\":";
  append_ascii_string(out, info.language);
  out += ",\"cwd\":";
  append_ascii_string(out, info.cwd);
  out += "}";
}

// Nothing was answered yet and the body is not usable.
Task<void> refuse_body(http::Exchange& exchange, const Error& error) {
  if (error.code() == Code::kResourceExhausted) {
    co_await answer_text(exchange, 413, "The request's body is too long");
  }
}

// Ends when the client does; the handler ends it otherwise.
Task<void> watch_client(http::Exchange& exchange, std::shared_ptr<Context> context,
                        std::shared_ptr<RunStream> stream, std::shared_ptr<bool> over) {
  co_await exchange.wait_disconnect();
  if (!*over) context->cancel(stream);
  *over = true;
}

}  // namespace

Task<void> Service::handle(http::Exchange& exchange) {
  const http::RequestHead& request = exchange.request();
  if (request.method == "OPTIONS" && request.headers.has("Access-Control-Request-Method")) {
    http::Response response;
    response.headers = {
        {"Access-Control-Allow-Origin", "*"},
        {"Access-Control-Allow-Methods", "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"},
        {"Access-Control-Max-Age", "600"}};
    if (const auto wanted = request.headers.get("Access-Control-Request-Headers")) {
      response.headers.add("Access-Control-Allow-Headers", std::string(*wanted));
    }
    response.body = "OK";
    (void)co_await exchange.respond(std::move(response));
    co_return;
  }
  co_await route(exchange);
}

Task<void> Service::route(http::Exchange& exchange) {
  const std::string_view path = exchange.request().path();
  const std::string_view method = exchange.request().method;
  if (path == "/health") {
    if (method != "GET") co_return co_await refuse_method(exchange);
    co_await answer_json(exchange, 200, "\"OK\"");
  } else if (path == "/execute") {
    if (method != "POST") co_return co_await refuse_method(exchange);
    co_await execute(exchange);
  } else if (path == kContexts) {
    if (method == "POST") co_return co_await create_context(exchange);
    if (method == "GET") co_return co_await list_contexts(exchange);
    co_await refuse_method(exchange);
  } else if (path.starts_with("/contexts/")) {
    std::string_view id = path.substr(kContexts.size() + 1);
    const bool restart = id.ends_with(kRestart);
    if (restart) id.remove_suffix(kRestart.size());
    if (method != (restart ? "POST" : "DELETE")) co_return co_await refuse_method(exchange);
    if (restart) {
      co_await restart_context(exchange, std::string(id));
    } else {
      co_await remove_context(exchange, std::string(id));
    }
  } else {
    co_await answer_json(exchange, 404, R"({"detail":"Not Found"})");
  }
}

Task<void> Service::execute(http::Exchange& exchange) {
  const auto body = co_await exchange.body().read_all(kMaxBody);
  if (!body) co_return co_await refuse_body(exchange, body.error());
  auto request = parse_execute_request(*body);
  if (!request) co_return co_await answer_json(exchange, 422, request.error().message());
  if (!request->context_id.empty() && !request->language.empty()) {
    co_return co_await answer_text(exchange, 400,
                                   "Only one of context_id or language can be provided");
  }
  std::shared_ptr<Context> context;
  if (!request->context_id.empty()) {
    context = contexts_.find(request->context_id);
    if (!context) co_return co_await refuse_unknown(exchange, request->context_id);
  } else {
    auto found = contexts_.find_default(normalize_language(request->language));
    if (!found) co_return co_await refuse_context(exchange, found.error());
    context = *std::move(found);
  }
  auto stream = std::make_shared<RunStream>(executor_);
  context->run({std::move(request->code), std::move(request->env_vars)}, stream);
  // The head goes out before the code's turn comes: clients' timers stop with it.
  if (!co_await exchange.start({200, fields(exchange, "")}, std::nullopt)) {
    context->cancel(stream);
    co_return;
  }
  const auto over = std::make_shared<bool>(false);
  net::spawn(executor_, watch_client(exchange, context, stream, over));
  co_await send_lines(exchange, *stream);
  if (!*over && stream->left()) context->cancel(stream);
  *over = true;
}

Task<void> Service::send_lines(http::Exchange& exchange, RunStream& stream) {
  for (;;) {
    auto line = co_await stream.next();
    if (!line) break;
    if (!co_await exchange.write(*line)) {
      stream.leave();
      co_return;
    }
  }
  if (stream.left()) {
    exchange.abort();
    co_return;
  }
  (void)co_await exchange.finish(end_line());
}

Task<void> Service::create_context(http::Exchange& exchange) {
  const auto body = co_await exchange.body().read_all(kMaxBody);
  if (!body) co_return co_await refuse_body(exchange, body.error());
  const auto request = parse_context_request(*body);
  if (!request) co_return co_await answer_json(exchange, 422, request.error().message());
  auto context = co_await contexts_.create(normalize_language(request->language), request->cwd);
  if (!context) co_return co_await refuse_context(exchange, context.error());
  std::string json;
  append_info(json, (*context)->info());
  co_await answer_json(exchange, 200, std::move(json));
}

Task<void> Service::list_contexts(http::Exchange& exchange) {
  std::string json = "[";
  for (const auto& context : contexts_.list()) {
    if (json.size() > 1) json += ',';
    append_info(json, context->info());
  }
  co_await answer_json(exchange, 200, json + "]");
}

Task<void> Service::restart_context(http::Exchange& exchange, std::string id) {
  const auto context = contexts_.find(id);
  if (!context) co_return co_await refuse_unknown(exchange, id);
  if (!co_await context->restart()) {
    co_return co_await answer_text(exchange, 500, cat("Failed to restart context ", id));
  }
  co_await answer_json(exchange, 200, "null");
}

Task<void> Service::remove_context(http::Exchange& exchange, std::string id) {
  auto context = contexts_.find(id);
  if (!context) co_return co_await refuse_unknown(exchange, id);
  co_await contexts_.remove(std::move(context));
  co_await answer_json(exchange, 200, "null");
}

}  // namespace alcove::interpreter
