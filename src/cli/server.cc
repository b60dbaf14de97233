// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/server.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/strings.h"
#include "cli/printable.h"
#include "http/url.h"

namespace alcove::cli {
namespace {

namespace json = boost::json;

Code code_of_status(int status) {
  switch (status) {
    case 400:
      return Code::kInvalidArgument;
    case 401:
      return Code::kUnauthenticated;
    case 403:
      return Code::kPermissionDenied;
    case 404:
      return Code::kNotFound;
    case 409:
      return Code::kAborted;
    case 429:
      return Code::kResourceExhausted;
    case 502:
    case 503:
      return Code::kUnavailable;
    case 504:
      return Code::kDeadlineExceeded;
    default:
      return Code::kInternal;
  }
}

json::value parse_lenient(std::string_view text) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  return error ? json::value() : value;
}

}  // namespace

std::string text_field(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

int64_t number_field(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr) return 0;
  if (value->is_int64()) return value->get_int64();
  if (value->is_uint64()) return static_cast<int64_t>(value->get_uint64());
  return value->is_double() ? static_cast<int64_t>(value->get_double()) : 0;
}

Error error_of(const http::Response& response) {
  const json::value body = parse_lenient(response.body);
  std::string text = body.is_object() ? text_field(body.get_object(), "message") : std::string();
  // A sandbox can be the one that answers.
  text = text.empty() ? cat("the server answered with HTTP ", response.status) : printable(text);
  return Error(code_of_status(response.status), std::move(text));
}

Result<Server> Server::open(const ClientSettings& settings) {
  ALCOVE_TRY_ASSIGN(Endpoint api, parse_endpoint(settings.api_url));
  ALCOVE_TRY_ASSIGN(Endpoint sandboxes, parse_endpoint(settings.sandbox_url));
  return Server(std::move(api), std::move(sandboxes), settings.api_key);
}

Task<Result<ApiReply>> Server::call(std::string method, std::string target,
                                    std::optional<json::value> body) {
  http::RequestHead head;
  head.method = std::move(method);
  head.target = std::move(target);
  head.headers = {{"X-API-Key", key_}, {"Accept", "application/json"}};
  if (body) head.headers.add("Content-Type", "application/json");
  ALCOVE_CO_TRY_ASSIGN(
      http::Response response,
      co_await api_.fetch(std::move(head), body ? json::serialize(*body) : std::string(),
                          kRequestLimit));
  if (response.status == 401) {
    co_return fail(
        Code::kUnauthenticated,
        cat(api_.endpoint().origin(), " refuses the API key: ", error_of(response).message(),
            ". `alcove key create` on the server's machine makes one; give it with ",
            "--api-key or E2B_API_KEY"));
  }
  if (response.status < 200 || response.status > 299) co_return fail(error_of(response));
  co_return ApiReply{.body = parse_lenient(response.body), .headers = std::move(response.headers)};
}

Task<Result<ApiReply>> Server::call_sandbox(std::string method, std::string id, std::string target,
                                            std::optional<json::value> body) {
  auto reply = co_await call(std::move(method),
                             cat("/sandboxes/", http::percent_encode(id), target), std::move(body));
  if (!reply && reply.error().code() == Code::kNotFound) {
    co_return fail(Code::kNotFound,
                   cat("there is no sandbox ", printable(id),
                       " for this API key; `alcove sandbox ls` lists those there are"));
  }
  co_return reply;
}

}  // namespace alcove::cli
