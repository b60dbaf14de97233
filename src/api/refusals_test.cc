// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/refusals.h"

#include "api/testing/api_fixture.h"

namespace alcove::api::testing {
namespace {

class Refusals : public ApiTest {};

TEST_F(Refusals, UnbuiltSandboxRoutesSaySoByName) {
  add_sandbox("i1");
  struct Case {
    const char* method;
    const char* path;
    const char* feature;
  };
  constexpr Case kCases[] = {
      {"POST", "/sandboxes/%/pause", "pause"},
      {"POST", "/sandboxes/%/fork", "fork"},
      {"POST", "/sandboxes/%/snapshots", "snapshot"},
      {"PUT", "/sandboxes/%/network", "network"},
  };
  for (const Case& refused : kCases) {
    const auto path = [&](const char* id) {
      std::string out = refused.path;
      return out.replace(out.find('%'), 1, id);
    };
    expect_error(send(refused.method, path("i1"), "{}"), 400,
                 std::string(refused.feature) + " is not available on this server yet.");
    expect_error(send(refused.method, path("unknown")), 404, "sandbox 'unknown' was not found");
    expect_error(send(refused.method, path("BAD")), 400, "Invalid sandbox ID");
    EXPECT_EQ(send_as_other(refused.method, path("i1")).status, 404) << refused.path;
  }
}

TEST_F(Refusals, WhatRunsIsNotResumed) {
  add_sandbox("i1");
  for (const char* body : {"", "{}", R"({"timeout":10})"}) {
    expect_error(send("POST", "/sandboxes/i1/resume", body), 409,
                 "The sandbox is running already.");
  }
  expect_error(send("POST", "/sandboxes/unknown/resume"), 404, "sandbox 'unknown' was not found");
  expect_error(send_as_other("POST", "/sandboxes/i1/resume"), 404, "sandbox 'i1' was not found");
}

TEST_F(Refusals, TemplatesAreNeitherBuiltNorTagged) {
  struct Case {
    const char* method;
    const char* path;
    const char* feature;
  };
  constexpr Case kCases[] = {
      {"POST", "/v3/templates", "building a template"},
      {"POST", "/v2/templates/base/builds/b1", "building a template"},
      {"GET", "/templates/base/builds/b1/status", "building a template"},
      {"GET", "/templates/base/files/abc", "building a template"},
      {"GET", "/templates/base/tags", "tagging a template"},
      {"POST", "/templates/tags", "tagging a template"},
      {"DELETE", "/templates/tags", "tagging a template"},
  };
  for (const Case& refused : kCases) {
    const bool has_body = std::string_view(refused.method) != "GET";
    expect_error(send(refused.method, refused.path, has_body ? "{}" : ""), 400,
                 std::string(refused.feature) + " is not available on this server yet.");
  }
}

TEST_F(Refusals, VolumesAreOff) {
  for (const char* method : {"GET", "POST"}) {
    expect_error(send(method, "/volumes", "{}"), 403, "Volumes are not enabled.");
  }
  for (const char* method : {"GET", "DELETE"}) {
    expect_error(send(method, "/volumes/x"), 403, "Volumes are not enabled.");
  }
}

TEST_F(Refusals, SecretsAreOffAndNotCached) {
  for (const char* method : {"GET", "POST"}) {
    const Reply reply = send(method, "/secrets", "{}");
    expect_error(reply, 403, "Secrets are not enabled.");
    EXPECT_EQ(reply.header("Cache-Control"), "no-store");
  }
  for (const char* method : {"GET", "POST", "DELETE"}) {
    expect_error(send(method, "/secrets/name"), 403, "Secrets are not enabled.");
  }
}

}  // namespace
}  // namespace alcove::api::testing
