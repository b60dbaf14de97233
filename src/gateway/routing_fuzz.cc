// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors

// Input: "<method> <target>\n" and header lines "<name>: <value>\n". What route() decides must hold
// whatever the input is.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>

#include "base/strings.h"
#include "gateway/access.h"
#include "gateway/forwarding.h"
#include "gateway/ingress.h"
#include "gateway/routing.h"
#include "gateway/shared_origin.h"
#include "gateway/target.h"
#include "http/url.h"

namespace {

using namespace alcove;
using namespace alcove::gateway;

void check(bool claim) {
  if (!claim) std::abort();
}

http::RequestHead parse(std::string_view text) {
  http::RequestHead head;
  bool first = true;
  for (const std::string_view line : split(text, '\n')) {
    if (first) {
      const size_t blank = line.find(' ');
      head.method = line.substr(0, blank);
      if (blank != std::string_view::npos) head.target = line.substr(blank + 1);
      first = false;
      continue;
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    head.headers.add(std::string(line.substr(0, colon)), std::string(trim(line.substr(colon + 1))));
  }
  return head;
}

// A sandbox named by the path: the service gets a path of its own and no cookie, and an answer
// leaves with exactly one more policy and without anything for the origin.
void check_shared(const http::RequestHead& head, const ToSandbox& to) {
  check(to.prefix.starts_with(kPathRoot));
  check(split_target(head.target).path().starts_with(to.prefix));
  auto made = make_upstream_head(head, Upgrade::kNone);
  if (!made) return;
  http::RequestHead inside = *std::move(made);
  enter_shared(inside, to.prefix);
  check(inside.target.starts_with('/'));
  check(!inside.headers.has("Cookie") && inside.headers.count("X-Forwarded-Prefix") == 1);
  const std::string_view control = split_target(head.target).path().substr(to.prefix.size());
  check(is_agent_control_path(control) ==
        is_agent_control_path(split_target(inside.target).path()));

  // The request's fields serve as an answer's, too.
  http::Headers answer = head.headers;
  leave_shared(answer, to.prefix, head.headers.get("Host").value_or(""));
  check(answer.count("Content-Security-Policy") ==
        head.headers.count("Content-Security-Policy") + 1);
  check(!answer.has("Set-Cookie") && !answer.has("Service-Worker-Allowed"));
}

void check_route(const http::RequestHead& head, const RoutingOptions& options) {
  const Route where = route(head, options);
  if (const auto* to = std::get_if<ToSandbox>(&where)) {
    check(to->port != 0);
    check(parse_sandbox_id(to->id.str()).has_value());
    check(to->id.str().find('-') == std::string::npos);
    // The target of an error page and of a log line: nothing in it may need escaping.
    check(to->id.str().find_first_of("<>\"\\\r\n") == std::string::npos);
    if (!to->prefix.empty()) check_shared(head, *to);
  }
  if (const auto* refusal = std::get_if<Refusal>(&where)) check(refusal->status == 400);

  // A sandbox-shaped host decides alone; what the path names comes after the headers.
  http::RequestHead by_host_only = head;
  by_host_only.headers.remove("E2b-Sandbox-Id");
  by_host_only.headers.remove("E2b-Sandbox-Port");
  const Route host_says = route(by_host_only, options);
  if (const auto* to = std::get_if<ToSandbox>(&host_says); to && to->prefix.empty()) {
    const auto* same = std::get_if<ToSandbox>(&where);
    check(same != nullptr && same->id == to->id && same->port == to->port);
  }
}

// The spellings that a router which decodes segments takes for a control call are all refused.
void check_control_path(std::string_view path) {
  const auto segments = http::path_segments(path);
  if (!segments || segments->size() != 1) return;
  for (const std::string_view name :
       {"init", "freeze", "unfreeze", "fsfreeze", "fsthaw", "collapse", "upgrade", "journal"}) {
    if (segments->front() == name) check(is_agent_control_path(path));
  }
}

void check_forwarding(const http::RequestHead& head) {
  const auto forwarded = make_upstream_head(head, requested_upgrade(head, 8000));
  if (!forwarded) return;
  check(forwarded->headers.count("Host") == 1);
  check(!forwarded->headers.has("Transfer-Encoding") && !forwarded->headers.has("Content-Length"));
  check(!forwarded->headers.has("Proxy-Authorization"));
  // What OpenSSL is given as a name must not end earlier for it, and no address.
  const std::string name = server_name(*forwarded->headers.get("Host"));
  check(name.size() < 256 && name.find_first_of(std::string_view("\0:[]/@ ", 8)) == name.npos);
}

// The request's fields serve as an answer's, too.
void check_answer(const http::Headers& fields, int status) {
  http::ResponseHead head{.status = status, .headers = fields};
  if (!clean_response_headers(head)) return;
  for (const auto& [name, value] : head.headers) {
    check(name.size() < 7 || !equal_ignoring_case(std::string_view(name).substr(0, 6), "proxy-"));
  }
  for (const std::string_view name :
       {"Transfer-Encoding", "Content-Length", "Keep-Alive", "TE", "Trailer"}) {
    check(!head.headers.has(name));
  }
  const bool upgrades = status == 101 || (status == 426 && head.headers.has("Upgrade"));
  check(head.headers.count("Connection") == (upgrades ? 1 : 0));
  check(upgrades || !head.headers.has("Upgrade"));
  if (upgrades) check(head.headers.get("Connection") == "Upgrade");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const http::RequestHead head = parse({reinterpret_cast<const char*>(data), size});
  check_route(head, {});
  check_route(head, {.domain = "alcove.localhost"});
  check_control_path(split_target(head.target).path());
  check_forwarding(head);
  for (const int status : {101, 200, 426}) check_answer(head.headers, status);
  return 0;
}
