// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <algorithm>
#include <array>

#include "base/strings.h"
#include "connect/connect.h"
#include "connect/gzip.h"

namespace alcove::connect {
namespace {

constexpr std::chrono::seconds kDefaultKeepalive{90};
constexpr std::chrono::seconds kLongestKeepalive{24 * 3600};
constexpr size_t kMostTimeoutDigits = 10;

struct ContentType {
  std::string_view name;
  CallKind kind;
  Codec codec;
};
constexpr std::array<ContentType, 4> kContentTypes = {{
    {"application/json", CallKind::kUnary, Codec::kJson},
    {"application/proto", CallKind::kUnary, Codec::kProto},
    {"application/connect+json", CallKind::kStream, Codec::kJson},
    {"application/connect+proto", CallKind::kStream, Codec::kProto},
}};

std::string_view content_type(const http::RequestHead& request) {
  return request.headers.get("Content-Type").value_or("");
}

// JSON over HTTP may say "; charset=utf-8"; everything else is compared exactly.
std::optional<Codec> find_codec(std::string_view type, CallKind kind) {
  const size_t semicolon = type.find(';');
  const std::string_view name = trim(type.substr(0, semicolon));
  if (semicolon != std::string_view::npos) {
    const std::string parameter = to_lower(trim(type.substr(semicolon + 1)));
    const bool utf8 = parameter == "charset=utf-8" || parameter == "charset=\"utf-8\"";
    if (!utf8 || !equal_ignoring_case(name, "application/json")) return std::nullopt;
  }
  for (const ContentType& known : kContentTypes) {
    if (known.kind == kind && equal_ignoring_case(known.name, name)) return known.codec;
  }
  return std::nullopt;
}

bool is_none_or(std::optional<std::string_view> value, std::initializer_list<std::string_view> ok) {
  return !value || value->empty() || std::find(ok.begin(), ok.end(), *value) != ok.end();
}

Result<void> check_headers(const http::Headers& headers, CallKind kind) {
  if (!is_none_or(headers.get("Connect-Protocol-Version"), {"1"})) {
    return fail(Code::kInvalidArgument, "connect-protocol-version must be \"1\"");
  }
  const auto plain = headers.get("Content-Encoding");
  const auto enveloped = headers.get("Connect-Content-Encoding");
  const bool known = kind == CallKind::kUnary
                         ? is_none_or(plain, {"identity", "gzip"})
                         : is_none_or(plain, {"identity"}) && is_none_or(enveloped, {"identity"});
  if (!known) return fail(Code::kUnimplemented, "unknown compression");
  return {};
}

Result<std::optional<std::chrono::milliseconds>> parse_timeout(const http::Headers& headers) {
  const auto text = headers.get("Connect-Timeout-Ms");
  if (!text || text->empty()) return std::nullopt;
  const auto value = parse_number<uint64_t>(*text);
  if (!value || text->size() > kMostTimeoutDigits) {
    return fail(Code::kInvalidArgument, cat("invalid Connect-Timeout-Ms: ", *text));
  }
  return std::chrono::milliseconds(*value);
}

std::chrono::seconds parse_keepalive(const http::Headers& headers) {
  const auto text = headers.get("Keepalive-Ping-Interval");
  const auto value = text ? parse_number<int64_t>(*text) : std::nullopt;
  if (!value) return kDefaultKeepalive;
  return std::chrono::seconds(std::clamp<int64_t>(*value, 1, kLongestKeepalive.count()));
}

Task<void> refuse_method(http::Exchange& exchange) {
  http::Response response{.status = 405, .headers = {{"Allow", "POST"}}, .body = {}};
  (void)co_await exchange.respond(std::move(response));
}

Task<void> refuse_content_type(http::Exchange& exchange, CallKind kind) {
  std::string accepted;
  for (const ContentType& known : kContentTypes) {
    if (known.kind != kind) continue;
    if (!accepted.empty()) accepted += ", ";
    accepted += known.name;
  }
  http::Response response{.status = 415, .headers = {{"Accept-Post", accepted}}, .body = {}};
  (void)co_await exchange.respond(std::move(response));
}

}  // namespace

Task<std::optional<CallInfo>> accept_call(http::Exchange& exchange, CallKind kind) {
  const http::Headers& headers = exchange.request().headers;
  if (exchange.request().method != "POST") {
    co_await refuse_method(exchange);
    co_return std::nullopt;
  }
  const auto codec = find_codec(content_type(exchange.request()), kind);
  if (!codec) {
    co_await refuse_content_type(exchange, kind);
    co_return std::nullopt;
  }
  CallInfo call{.codec = *codec,
                .streaming = kind == CallKind::kStream,
                .deadline = {},
                .timeout = {},
                .keepalive = parse_keepalive(headers)};
  if (const auto checked = check_headers(headers, kind); !checked) {
    co_await respond_error(exchange, call, checked.error());
    co_return std::nullopt;
  }
  const auto timeout = parse_timeout(headers);
  if (!timeout) {
    co_await respond_error(exchange, call, timeout.error());
    co_return std::nullopt;
  }
  call.timeout = *timeout;
  if (call.timeout) call.deadline = std::chrono::steady_clock::now() + *call.timeout;
  co_return call;
}

CallInfo call_shape(const http::RequestHead& request) {
  CallInfo call;
  const std::string_view type = request.headers.get("Content-Type").value_or("");
  for (const CallKind kind : {CallKind::kUnary, CallKind::kStream}) {
    const auto codec = find_codec(type, kind);
    if (!codec) continue;
    call.codec = *codec;
    call.streaming = kind == CallKind::kStream;
  }
  return call;
}

Task<void> refuse_unknown_method(http::Exchange& exchange, std::string_view service,
                                 std::string_view method) {
  const Error error(Code::kUnimplemented, cat(service, " has no method '", method, "'"));
  const bool streaming = call_shape(exchange.request()).streaming;
  const auto call =
      co_await accept_call(exchange, streaming ? CallKind::kStream : CallKind::kUnary);
  if (call) co_await respond_error(exchange, *call, error);
}

Task<Result<std::string>> read_unary(http::Exchange& exchange, uint64_t limit) {
  return read_unary(exchange.request(), exchange.body(), limit);
}

Task<Result<std::string>> read_unary(const http::RequestHead& request, http::BodyReader& body,
                                     uint64_t limit) {
  ALCOVE_CO_TRY_ASSIGN(std::string message, co_await body.read_all(limit));
  if (request.headers.get("Content-Encoding") == "gzip" && !message.empty()) {
    ALCOVE_CO_TRY_ASSIGN(message, gunzip(message, limit));
  }
  if (message.empty() && find_codec(content_type(request), CallKind::kUnary) == Codec::kJson) {
    co_return fail(Code::kInvalidArgument, "the body is empty: a JSON message is at least {}");
  }
  co_return message;
}

Task<void> respond_unary(http::Exchange& exchange, const CallInfo& call, std::string message) {
  http::Response response{
      .status = 200,
      .headers = {{"Content-Type",
                   call.codec == Codec::kJson ? "application/json" : "application/proto"}},
      .body = std::move(message)};
  (void)co_await exchange.respond(std::move(response));
}

Task<void> respond_error(http::Exchange& exchange, const CallInfo& call, const Error& error) {
  if (call.streaming) {
    StreamWriter writer(exchange, call);
    (void)co_await writer.finish(error);
    co_return;
  }
  http::Response response{.status = http_status(error.code()),
                          .headers = {{"Content-Type", "application/json"}},
                          .body = error_json(error)};
  (void)co_await exchange.respond(std::move(response));
}

}  // namespace alcove::connect
