// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/error_page.h"

#include <array>
#include <string>

#include <boost/json/serialize.hpp>

#include "agent/cors.h"
#include "base/strings.h"
#include "gateway/routing.h"

namespace alcove::gateway {
namespace {

constexpr std::string_view kJsonType = "application/json; charset=utf-8";
constexpr std::string_view kHtmlType = "text/html; charset=utf-8";

struct Words {
  int status;
  std::string_view message;
  std::string_view title;
  // After the title, before the id.
  std::string_view explanation;
};

// A lack of the server's own is 503, which says that it may pass. Not on the agent's port: the SDKs
// for JavaScript take each 502, 503 and 429 there for a sandbox that is gone, and a 500 for what it
// is.
int lack_status(uint16_t port) { return port == kAgentPort ? 500 : 503; }

Words words_for(Trouble trouble, uint16_t port) {
  switch (trouble) {
    case Trouble::kSandboxNotFound:
      return {502, "The sandbox was not found", "Sandbox Not Found",
              "This sandbox does not exist, or it has ended."};
    case Trouble::kSandboxUnclear:
      return {lack_status(port), "The sandbox could not be taken over yet; it is tried again",
              "Sandbox Not Taken Over Yet",
              "The server was restarted and could not take this sandbox over yet. Try again."};
    case Trouble::kPortClosed:
      return {502, "The sandbox is running but port is not open", "Port Closed",
              "The sandbox is running, but there is no service running on port"};
    case Trouble::kTrafficTokenMissing:
      return {403,
              "Sandbox is secured with traffic access token. Token header "
              "'e2b-traffic-access-token' is missing",
              "Missing Traffic Access Token",
              "Requests to this sandbox need the header e2b-traffic-access-token."};
    case Trouble::kTrafficTokenWrong:
      return {403,
              "Sandbox is secured with traffic access token. Provided token in header "
              "'e2b-traffic-access-token' is invalid",
              "Invalid Traffic Access Token",
              "The header e2b-traffic-access-token does not hold this sandbox's token."};
    case Trouble::kNoAnswer:
      return {502, "The service in the sandbox closed the connection without an answer",
              "No Answer", "The service closed the connection without an answer."};
    case Trouble::kBadAnswer:
      return {502, "The service in the sandbox sent an answer that is not valid HTTP",
              "Invalid Answer", "The service sent an answer that is not valid HTTP."};
    case Trouble::kTooSlow:
      return {502, "The service in the sandbox did not take the connection in time", "No Answer",
              "The service did not take the connection in time."};
    case Trouble::kNoConnection:
      return {lack_status(port),
              "The server cannot connect to the sandbox now; it runs out of resources",
              "No Connection", "The server runs out of resources; the sandbox is running."};
    case Trouble::kNoTls:
      return {502, "The service in the sandbox does not speak TLS, but its port is in httpsPorts",
              "No TLS", "The service does not speak TLS, but its port is one of httpsPorts."};
    case Trouble::kTooManyWaiting:
      return {429, "Too many requests wait for services of the sandbox to start",
              "Too Many Requests", "Too many requests wait for services of this sandbox to start."};
    case Trouble::kTooManyWaitingInAll:
      return {503, "Too many requests wait for services of sandboxes to start", "Too Many Requests",
              "Too many requests wait for services of sandboxes to start."};
  }
  return {500, "Unknown trouble", "Error", ""};
}

bool names_port(Trouble trouble) {
  switch (trouble) {
    case Trouble::kSandboxNotFound:
    case Trouble::kTrafficTokenMissing:
    case Trouble::kTrafficTokenWrong:
    case Trouble::kNoConnection:
      return false;
    default:
      return true;
  }
}

bool may_pass(Trouble trouble) {
  return trouble == Trouble::kSandboxUnclear || trouble == Trouble::kNoConnection ||
         trouble == Trouble::kTooManyWaiting || trouble == Trouble::kTooManyWaitingInAll;
}

// Scripts of other origins may read it too.
void add_retry_after(http::Response& response) {
  response.headers.add("Retry-After", "1");
  response.headers.add("Access-Control-Expose-Headers", "Retry-After");
}

// `id` needs no escaping: it is made of [a-z0-9].
std::string json_body(Trouble trouble, const Words& words, const SandboxId& id, uint16_t port,
                      size_t limit) {
  std::string body = cat(R"({"sandboxId":")", id.str(), R"(","message":")", words.message, '"');
  if (names_port(trouble)) body += cat(R"(,"port":)", port);
  if (trouble == Trouble::kTooManyWaiting) body += cat(R"(,"connectionLimit":)", limit);
  return body += cat(R"(,"code":)", words.status, '}');
}

std::string html_body(Trouble trouble, const Words& words, const SandboxId& id, uint16_t port) {
  std::string explanation(words.explanation);
  if (trouble == Trouble::kPortClosed) explanation += cat(' ', port, '.');
  return cat(
      "<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", words.title,
      "</title><style>body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:15vh auto;"
      "padding:0 1rem;color:#222}code{background:#eee;padding:.1em .3em;border-radius:3px}"
      "@media(prefers-color-scheme:dark){body{background:#161616;color:#ddd}"
      "code{background:#333}}</style></head><body><h1>",
      words.title, "</h1><p>", explanation, "</p><p>Sandbox <code>", id.str(),
      "</code>, port <code>", port, "</code></p></body></html>");
}

http::Response make_response(int status, std::string_view content_type, std::string body) {
  http::Response response;
  response.status = status;
  response.headers.add("Content-Type", std::string(content_type));
  response.headers.add("Access-Control-Allow-Origin", "*");
  response.body = std::move(body);
  return response;
}

bool contains_ignoring_case(std::string_view text, std::string_view word) {
  for (size_t at = 0; at + word.size() <= text.size(); ++at) {
    if (equal_ignoring_case(text.substr(at, word.size()), word)) return true;
  }
  return false;
}

bool is_browser(std::string_view user_agent) {
  constexpr std::array<std::string_view, 7> kNames = {"mozilla", "chrome", "safari", "firefox",
                                                      "edge",    "opera",  "msie"};
  for (const std::string_view name : kNames) {
    if (contains_ignoring_case(user_agent, name)) return true;
  }
  return false;
}

bool is_from_script(const http::RequestHead& request) {
  if (const auto mode = request.headers.get("Sec-Fetch-Mode")) {
    for (const std::string_view scripted : {"cors", "no-cors", "same-origin", "websocket"}) {
      if (equal_ignoring_case(trim(*mode), scripted)) return true;
    }
    return false;
  }
  return request.headers.has("X-Requested-With");
}

}  // namespace

bool wants_html(const http::RequestHead& request) {
  const auto user_agent = request.headers.get("User-Agent");
  if (!user_agent || !is_browser(*user_agent)) return false;
  const std::string_view accept = request.headers.get("Accept").value_or("");
  if (contains_ignoring_case(accept, "application/json") &&
      !contains_ignoring_case(accept, "text/html")) {
    return false;
  }
  return !is_from_script(request);
}

http::Response make_error_page(Trouble trouble, const http::RequestHead& request,
                               const SandboxId& id, uint16_t port, size_t limit) {
  // A browser lets a script read an answer only after a preflight that succeeds, and a preflight
  // carries no token.
  if (auto preflight = agent::preflight_response(request)) return *std::move(preflight);
  const Words words = words_for(trouble, port);
  http::Response page =
      wants_html(request)
          ? make_response(words.status, kHtmlType, html_body(trouble, words, id, port))
          : make_response(words.status, kJsonType, json_body(trouble, words, id, port, limit));
  if (may_pass(trouble)) add_retry_after(page);
  return page;
}

http::Response make_control_path_refusal(std::string_view path) {
  // The path is the client's text and may hold anything.
  const std::string shown = is_valid_utf8(path) ? std::string(path) : std::string();
  return make_response(404, kJsonType,
                       cat(R"({"message":"Path not found","path":)", boost::json::serialize(shown),
                           R"(,"code":404})"));
}

http::Response make_error(int status, std::string_view message) {
  http::Response response = make_response(
      status, kJsonType, cat(R"({"code":)", status, R"(,"message":")", message, "\"}"));
  if (status == 429 || status == 503) add_retry_after(response);
  return response;
}

http::Response make_plain_text(int status, std::string_view text) {
  return make_response(status, "text/plain; charset=utf-8", std::string(text));
}

}  // namespace alcove::gateway
