// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/file_url_finder.h"

#include <gtest/gtest.h>

#include "agent/access.h"
#include "base/strings.h"
#include "gateway/testing/fake_sandbox.h"

namespace alcove::gateway {
namespace {

using Miss = FileUrlFinder::Miss;

class FileUrlFinderTest : public testing::Test {
 protected:
  FileUrlFinderTest() {
    for (const char* name : {"ione", "itwo", "iopen"}) {
      store::Sandbox record;
      record.id = SandboxId(name);
      if (record.id != SandboxId("iopen")) record.envd_token = cat("token of ", name);
      sandboxes_.push_back(std::make_shared<FakeSandbox>(record));
      node_.add(sandboxes_.back());
    }
  }

  static std::string signature(const std::string& token, agent::FileOperation operation,
                               std::optional<int64_t> expiration = {}) {
    return agent::file_signature({operation, "/a b", "user", {}, expiration}, token);
  }
  static http::RequestHead request(std::string method, std::string_view signature,
                                   std::string_view more = "") {
    http::RequestHead head;
    head.method = std::move(method);
    // Signatures are base64, whose '+' clients escape.
    std::string escaped;
    for (const char c : signature) escaped += c == '+' ? "%2B" : std::string(1, c);
    head.target = cat("/files?path=%2Fa+b&username=user&signature=", escaped, more);
    return head;
  }
  tl::expected<SandboxId, Miss> find(const http::RequestHead& head,
                                     const std::string& client = "1.2.3.4") {
    return finder_.find(head, client, now_);
  }

  FakeNode node_;
  std::vector<std::shared_ptr<FakeSandbox>> sandboxes_;
  FileUrlFinder finder_{node_,
                        {.client = {.burst = 2, .per_second = 1},
                         .all = {.burst = 5, .per_second = 2},
                         .remembered = 3}};
  FileUrlFinder::TimePoint now_{std::chrono::hours(1)};
};

constexpr auto kRead = agent::FileOperation::kRead;
constexpr auto kWrite = agent::FileOperation::kWrite;

TEST_F(FileUrlFinderTest, SignatureTellsTheSandbox) {
  EXPECT_EQ(find(request("GET", signature("token of itwo", kRead))), SandboxId("itwo"));
  EXPECT_EQ(find(request("POST", signature("token of ione", kWrite))), SandboxId("ione"));
}

TEST_F(FileUrlFinderTest, ExpirationIsPartOfTheSignatureEvenWhenItPassed) {
  const std::string signed_until = signature("token of ione", kRead, 7);
  EXPECT_EQ(find(request("GET", signed_until, "&signature_expiration=7")), SandboxId("ione"));
  EXPECT_EQ(find(request("GET", signature("token of itwo", kRead, 7))).error(), Miss::kUnknown);
}

TEST_F(FileUrlFinderTest, BrowsersMayAskBefore) {
  http::RequestHead head = request("OPTIONS", signature("token of ione", kWrite));
  EXPECT_EQ(find(head).error(), Miss::kUnknown);
  head.headers.add("Access-Control-Request-Method", "POST");
  EXPECT_EQ(find(head), SandboxId("ione"));
}

TEST_F(FileUrlFinderTest, OtherOperationOrMethodIsUnknown) {
  EXPECT_EQ(find(request("POST", signature("token of ione", kRead))).error(), Miss::kUnknown);
  EXPECT_EQ(find(request("PUT", signature("token of ione", kWrite))).error(), Miss::kUnknown);
  EXPECT_EQ(find(request("GET", signature("", kRead))).error(), Miss::kUnknown);
}

TEST_F(FileUrlFinderTest, BrokenQueryIsUnknown) {
  EXPECT_EQ(find(request("GET", "x", "&signature_expiration=never")).error(), Miss::kUnknown);
  EXPECT_EQ(find(request("GET", "x", "&username=%zz")).error(), Miss::kUnknown);
}

TEST_F(FileUrlFinderTest, SearchesWithoutResultAreLimitedPerAddress) {
  EXPECT_EQ(find(request("GET", "v1_no")).error(), Miss::kUnknown);
  EXPECT_EQ(find(request("GET", "v1_no")).error(), Miss::kUnknown);
  EXPECT_EQ(find(request("GET", "v1_no")).error(), Miss::kTooOften);
  EXPECT_EQ(find(request("GET", "v1_no"), "5.6.7.8").error(), Miss::kUnknown);
  now_ += std::chrono::seconds(1);
  EXPECT_EQ(find(request("GET", "v1_no")).error(), Miss::kUnknown);
}

TEST_F(FileUrlFinderTest, WhatWasFoundCostsNothing) {
  const http::RequestHead head = request("GET", signature("token of itwo", kRead));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(find(head), SandboxId("itwo"));
}

TEST_F(FileUrlFinderTest, AllClientsTogetherHaveALimitToo) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(find(request("GET", "v1_no"), cat("client ", i)).error(), Miss::kUnknown);
  }
  EXPECT_EQ(find(request("GET", "v1_no"), "another").error(), Miss::kTooOften);
  now_ += std::chrono::seconds(1);
  EXPECT_EQ(find(request("GET", "v1_no"), "another").error(), Miss::kUnknown);
}

TEST_F(FileUrlFinderTest, NewClientsGiveNobodySearchesBack) {
  EXPECT_EQ(find(request("GET", "v1_no"), "busy").error(), Miss::kUnknown);
  EXPECT_EQ(find(request("GET", "v1_no"), "busy").error(), Miss::kUnknown);
  // More clients than are remembered; the busy one comes back between them.
  for (int i = 0; i < 3; ++i) {
    (void)find(request("GET", "v1_no"), cat("client ", i));
    EXPECT_EQ(find(request("GET", "v1_no"), "busy").error(), Miss::kTooOften);
  }
}

TEST_F(FileUrlFinderTest, WhatWasFoundStaysKnownWhileItIsUsed) {
  const http::RequestHead used = request("GET", signature("token of itwo", kRead));
  EXPECT_EQ(find(used), SandboxId("itwo"));
  // More signatures than are remembered.
  for (int64_t end = 1; end <= 3; ++end) {
    const std::string other = signature("token of ione", kRead, end);
    EXPECT_EQ(find(request("GET", other, cat("&signature_expiration=", end))), SandboxId("ione"));
    EXPECT_EQ(find(used), SandboxId("itwo"));
  }
  // Whoever may not search still finds it.
  for (int i = 0; i < 3; ++i) (void)find(request("GET", "v1_no"), "greedy");
  EXPECT_EQ(find(request("GET", "v1_no"), "greedy").error(), Miss::kTooOften);
  EXPECT_EQ(find(used, "greedy"), SandboxId("itwo"));
}

}  // namespace
}  // namespace alcove::gateway
