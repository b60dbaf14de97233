// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/routing.h"

#include <gtest/gtest.h>

#include <string>

#include "base/strings.h"

namespace alcove::gateway {
namespace {

constexpr std::string_view kId = "iabcdefghij0123456789";

struct Case {
  std::string method = "GET";
  std::string target = "/";
  http::Headers headers;
};

// "api", "file url", "<id>:<port>" or "<status> <text>".
std::string describe(const Case& given, const RoutingOptions& options = {}) {
  http::RequestHead head;
  head.method = given.method;
  head.target = given.target;
  head.headers = given.headers;
  const Route where = route(head, options);
  if (std::holds_alternative<ToApi>(where)) return "api";
  if (std::holds_alternative<ToFileUrl>(where)) return "file url";
  if (const auto* to = std::get_if<ToSandbox>(&where)) return cat(to->id.str(), ":", to->port);
  const auto& refusal = std::get<Refusal>(where);
  return cat(refusal.status, " ", refusal.text);
}

std::string by_host(std::string host, std::string target = "/",
                    const RoutingOptions& options = {}) {
  return describe({.target = std::move(target), .headers = {{"Host", std::move(host)}}}, options);
}

std::string by_headers(std::string id, std::string port, std::string target,
                       std::string method = "GET") {
  return describe({.method = std::move(method),
                   .target = std::move(target),
                   .headers = {{"host", "127.0.0.1:3000"},
                               {"e2b-sandbox-id", std::move(id)},
                               {"e2b-sandbox-port", std::move(port)}}});
}

std::string own(int port) { return cat(kId, ":", port); }

TEST(Routing, HostNamesPortAndSandbox) {
  EXPECT_EQ(by_host(cat("49983-", kId, ".example.org")), own(49983));
  EXPECT_EQ(by_host(cat("3000-", kId, ".localhost:3102")), own(3000));
  EXPECT_EQ(by_host(cat("8000-", kId, "-6532622b.example.org")), own(8000));
  EXPECT_EQ(by_host(cat("8000-", kId, "-a-b-c.example.org")), own(8000));
  EXPECT_EQ(by_host(cat("8000-", kId, ".example.org.:443")), own(8000));
  EXPECT_EQ(by_host(cat("8000-", to_lower(kId), ".EXAMPLE.org")), own(8000));
  EXPECT_EQ(by_host("8000-IABCDEFGHIJ0123456789.example.org"), own(8000));
  EXPECT_EQ(by_host("1-x.example.org"), "x:1");
}

TEST(Routing, SandboxHostBeatsHeadersAndPath) {
  const http::Headers headers = {{"Host", cat("8000-", kId, ".example.org")},
                                 {"E2b-Sandbox-Id", "iother"},
                                 {"E2b-Sandbox-Port", "49983"}};
  EXPECT_EQ(describe({.target = "/sandboxes", .headers = headers}), own(8000));
  EXPECT_EQ(by_host(cat("49983-", kId, ".example.org"), "/sandboxes"), own(49983));
}

TEST(Routing, ApiHostIsAlwaysTheApi) {
  const http::Headers headers = {{"Host", "api.alcove.localhost:3000"},
                                 {"E2b-Sandbox-Id", std::string(kId)},
                                 {"E2b-Sandbox-Port", "8000"}};
  EXPECT_EQ(describe({.target = "/anything", .headers = headers}), "api");
  EXPECT_EQ(describe({.target = "/anything", .headers = headers}, {.domain = "alcove.localhost"}),
            "api");
  // With a domain set, somebody else's "api." is an ordinary name.
  EXPECT_EQ(describe({.target = "/anything", .headers = headers}, {.domain = "example.org"}),
            own(8000));
}

TEST(Routing, OrdinaryNamesAreTheSharedOrigin) {
  for (const char* host :
       {"localhost:3000", "127.0.0.1:3000", "[::1]:3000", "box.lan", "box", "build-box.lan:3000",
        "192-168-1-5.example.net", "10-0-0-5.internal", "8000-iabc", ""}) {
    EXPECT_EQ(by_host(host, "/sandboxes"), "api") << host;
    const http::Headers headers = {
        {"Host", host}, {"E2b-Sandbox-Id", std::string(kId)}, {"E2b-Sandbox-Port", "8000"}};
    EXPECT_EQ(describe({.headers = headers}), own(8000)) << host;
  }
}

TEST(Routing, BrokenSandboxHostsAreRefused) {
  EXPECT_EQ(by_host(cat("http-", kId, ".example.org")), "400 Invalid host");
  EXPECT_EQ(by_host(cat("-", kId, ".example.org")), "400 Invalid host");
  EXPECT_EQ(by_host(cat("0-", kId, ".example.org")), "400 Invalid host");
  EXPECT_EQ(by_host(cat("65536-", kId, ".example.org")), "400 Invalid host");
  EXPECT_EQ(by_host(cat("99999999999999999999-", kId, ".example.org")), "400 Invalid host");
  EXPECT_EQ(by_host("8000-.example.org"), "400 Invalid sandbox ID");
  EXPECT_EQ(by_host("8000-a_b.example.org"), "400 Invalid sandbox ID");
  EXPECT_EQ(by_host("8000-a%00b.example.org"), "400 Invalid sandbox ID");
  EXPECT_EQ(by_host(cat("x-y.example.org"), "/", {.domain = "example.org"}), "400 Invalid host");
  EXPECT_EQ(by_host(cat("me@8000-", kId, ".example.org")), "400 Invalid host");
}

TEST(Routing, HostsThatAreNobodysAreRefused) {
  // No dot: a sandbox's name without its domain.
  EXPECT_EQ(by_host(cat("8000-", kId)), "400 Invalid host");
  EXPECT_EQ(by_host(cat("8000-", kId, ":3000")), "400 Invalid host");
  EXPECT_EQ(by_host("some-box"), "api");

  const RoutingOptions options{.domain = "example.org"};
  for (const std::string& host : {std::string("www.example.org"), std::string("8000.example.org"),
                                  cat(kId, ".example.org"), cat(kId, ".EXAMPLE.org.:443")}) {
    EXPECT_EQ(by_host(host, "/sandboxes", options), "400 Invalid host") << host;
  }
  for (const char* host : {"api.example.org", "example.org", "www.example.com", "a.b.example.org",
                           "localhost", "127.0.0.1"}) {
    EXPECT_EQ(by_host(host, "/sandboxes", options), "api") << host;
  }
  // Such a name may still be where clients send what names its sandbox otherwise.
  const http::Headers headers = {{"Host", "sandbox.example.org"},
                                 {"E2b-Sandbox-Id", std::string(kId)},
                                 {"E2b-Sandbox-Port", "49983"}};
  EXPECT_EQ(describe({.target = "/health", .headers = headers}, options), own(49983));
  EXPECT_EQ(describe({.target = "/v2/sandboxes", .headers = headers}, options), "api");
  EXPECT_EQ(by_host("sandbox.example.org", "/files?signature=v1_x", options), "file url");
  EXPECT_EQ(by_host("sandbox.example.org", cat("/_sandbox/", kId, "/8000/"), options), own(8000));
}

TEST(Routing, ContradictoryFieldsAreRefused) {
  EXPECT_EQ(describe({.headers = {{"Host", "a.example.org"}, {"Host", "b.example.org"}}}),
            "400 Invalid host");
  EXPECT_EQ(describe({.headers = {{"Host", "localhost"},
                                  {"E2b-Sandbox-Id", "ione"},
                                  {"E2b-Sandbox-Id", "itwo"},
                                  {"E2b-Sandbox-Port", "80"}}}),
            "400 contradictory headers");
  EXPECT_EQ(describe({.headers = {{"Host", "localhost"},
                                  {"E2b-Sandbox-Id", "ione"},
                                  {"E2b-Sandbox-Id", "ione"},
                                  {"E2b-Sandbox-Port", "80"}}}),
            "ione:80");
}

TEST(Routing, HeadersWithAnotherPortAreTheSandboxsWhateverThePath) {
  EXPECT_EQ(by_headers(std::string(kId), "49999", "/execute", "POST"), own(49999));
  EXPECT_EQ(by_headers(std::string(kId), "8000", "/sandboxes"), own(8000));
  EXPECT_EQ(by_headers(cat(kId, "-6532622b"), "8000", "/"), own(8000));
}

TEST(Routing, HeadersWithTheAgentsPort) {
  for (const char* path : {"/process.Process/Start", "/filesystem.Filesystem/Stat", "/files?path=x",
                           "/files/compose", "/health", "/metrics", "/envs", "/init", "/unknown",
                           "/", "*", "/sandboxesx", "/%73andboxes", "/x/sandboxes"}) {
    EXPECT_EQ(by_headers(std::string(kId), "49983", path), own(49983)) << path;
  }
  for (const char* path :
       {"/sandboxes", "/sandboxes?limit=1", "/sandboxes/iabc", "/v2/sandboxes", "/v3/templates",
        "/templates/x", "/snapshots", "/volumes", "/secrets", "/teams", "/api-keys",
        "/access-tokens", "/events/sandboxes", "/volumecontent/x/file", "//sandboxes"}) {
    EXPECT_EQ(by_headers(std::string(kId), "49983", path), "api") << path;
  }
}

// e2b 2.22.0 for Python sends the sandbox's headers with this call to the API.
TEST(Routing, Python2220ConnectGoesToTheApi) {
  EXPECT_EQ(by_headers(std::string(kId), "49983", cat("/sandboxes/", kId, "/connect"), "POST"),
            "api");
}

TEST(Routing, HalfOfTheHeadersIsRefusedOutsideTheApi) {
  const http::Headers only_id = {{"Host", "localhost"}, {"E2b-Sandbox-Id", std::string(kId)}};
  const http::Headers only_port = {{"Host", "localhost"}, {"E2b-Sandbox-Port", "8000"}};
  EXPECT_EQ(describe({.target = "/health", .headers = only_id}), "400 missing header");
  EXPECT_EQ(describe({.target = "/health", .headers = only_port}), "400 missing header");
  EXPECT_EQ(describe({.target = "/sandboxes", .headers = only_id}), "api");
  EXPECT_EQ(describe({.target = "/sandboxes", .headers = only_port}), "api");
  EXPECT_EQ(by_headers("", "8000", "/"), "400 missing header");
  EXPECT_EQ(by_headers(std::string(kId), "", "/"), "400 missing header");
  EXPECT_EQ(by_headers("", "", "/"), "api");
}

TEST(Routing, BadHeaderValuesAreRefused) {
  for (const char* port : {"http", "80a", "-1", "+80", "0", "65536", "8 0", "0x50"}) {
    EXPECT_EQ(by_headers(std::string(kId), port, "/"), "400 Invalid sandbox port") << port;
    EXPECT_EQ(by_headers(std::string(kId), port, "/sandboxes"), "api") << port;
  }
  for (const char* id : {"-", "a-", "-a", "a-b-c", "A", "a/b", "a.b", "../x", "a b"}) {
    EXPECT_EQ(by_headers(id, "8000", "/"), "400 Invalid sandbox ID") << id;
  }
}

TEST(Routing, PlainRequestsAreTheApis) {
  for (const char* target : {"/", "/health", "/sandboxes", "/nothing", "/files", "/files?path=x"}) {
    EXPECT_EQ(by_host("localhost:3000", target), "api") << target;
  }
  EXPECT_EQ(describe({}), "api");
}

TEST(Routing, SignedFileUrlsAreRecognised) {
  EXPECT_EQ(by_host("localhost:3000", "/files?path=a&signature=v1_x"), "file url");
  EXPECT_EQ(by_host("localhost:3000", "/files?signature=v1_x&path=a"), "file url");
  EXPECT_EQ(by_host(cat("49983-", kId, ".example.org"), "/files?signature=v1_x"), own(49983));
  EXPECT_EQ(by_headers(std::string(kId), "49983", "/files?signature=v1_x"), own(49983));
  EXPECT_EQ(by_host("localhost:3000", "/filesx?signature=v1_x"), "api");
}

TEST(Routing, AbsoluteTargetsNameTheirOwnHost) {
  EXPECT_EQ(by_host("localhost", cat("http://8000-", kId, ".example.org/sandboxes")), own(8000));
  EXPECT_EQ(by_host(cat("8000-", kId, ".example.org"), "http://localhost:3000/sandboxes"), "api");
  EXPECT_EQ(by_host("localhost", cat("HTTP://8000-", kId, ".example.org")), own(8000));
  EXPECT_EQ(by_host("localhost", cat("http://x@8000-", kId, ".example.org/")), "400 Invalid host");
}

TEST(Routing, ConnectMethodIsRefused) {
  EXPECT_EQ(describe({.method = "CONNECT", .target = "example.org:443", .headers = {}}),
            "400 CONNECT is not supported");
}

TEST(Routing, PathNamesTheSandboxWhereNothingElseDoes) {
  const std::string path = cat("/_sandbox/", kId, "/8000/x");
  const RoutingOptions options{.domain = "example.org"};
  EXPECT_EQ(by_host("127.0.0.1:3000", path), own(8000));
  EXPECT_EQ(by_host("[::1]:3000", path), own(8000));
  EXPECT_EQ(by_host("api.example.org", path, options), own(8000));
  EXPECT_EQ(by_host("127.0.0.1", cat("/_sandbox/", kId, "-6532622b/8000/x")), own(8000));
  EXPECT_EQ(by_host("127.0.0.1", cat("/_sandbox/", kId, "/0/x")), "400 Invalid sandbox port");
  EXPECT_EQ(by_host("127.0.0.1", cat("/_sandbox/", kId)), "400 Invalid sandbox port");
  EXPECT_EQ(by_host("127.0.0.1", "/_sandbox/A.B/8000/"), "400 Invalid sandbox ID");
  EXPECT_EQ(by_host("127.0.0.1", "/_sandbox"), "api");
  // A service may have such a path of its own.
  EXPECT_EQ(by_host("7000-iother.example.org", path), "iother:7000");
  EXPECT_EQ(by_headers("iother", "7000", path), "iother:7000");
}

}  // namespace
}  // namespace alcove::gateway
