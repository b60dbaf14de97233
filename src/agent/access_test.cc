// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/access.h"

#include <gtest/gtest.h>

#include "agent/cors.h"

namespace alcove::agent {
namespace {

const std::optional<std::string> kToken = "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0";

TEST(FileSignature, MatchesTheClientsVector) {
  const FileAccess access{FileOperation::kRead, "hello.txt", "user", {}, {}};
  EXPECT_EQ(file_signature(access, *kToken), "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E");
}

TEST(FileAccessCheck, NeedsNothingWithoutAToken) {
  EXPECT_TRUE(check_file_access({}, {}, std::nullopt, 0));
}

TEST(FileAccessCheck, AcceptsTheTokenOrASignature) {
  FileAccess access{FileOperation::kWrite, "/x", "", {}, {}};
  EXPECT_TRUE(check_file_access({{"X-Access-Token", *kToken}}, access, kToken, 0));
  EXPECT_EQ(check_file_access({}, access, kToken, 0).error().message(),
            "missing signature query parameter");
  access.signature = file_signature(access, *kToken);
  EXPECT_TRUE(check_file_access({}, access, kToken, 0));
  // A wrong token is not made good by a signature.
  EXPECT_FALSE(check_file_access({{"X-Access-Token", "wrong"}}, access, kToken, 0));
}

TEST(FileAccessCheck, SignatureIsForOneOperationPathUserAndTime) {
  FileAccess access{FileOperation::kRead, "/x", "u", {}, 100};
  access.signature = file_signature(access, *kToken);
  EXPECT_TRUE(check_file_access({}, access, kToken, 100));
  const auto refused = [&](FileAccess changed) {
    const auto result = check_file_access({}, changed, kToken, 0);
    return !result && result.error().message() == "invalid signature";
  };
  FileAccess changed = access;
  changed.operation = FileOperation::kWrite;
  EXPECT_TRUE(refused(changed));
  changed = access;
  changed.path = "/y";
  EXPECT_TRUE(refused(changed));
  changed = access;
  changed.username = "root";
  EXPECT_TRUE(refused(changed));
  changed = access;
  changed.expiration = 200;
  EXPECT_TRUE(refused(changed));
  changed = access;
  changed.expiration.reset();
  EXPECT_TRUE(refused(changed));
}

TEST(FileAccessCheck, ExpiryIsCheckedAfterTheSignature) {
  FileAccess access{FileOperation::kRead, "/x", "", {}, 100};
  access.signature = file_signature(access, *kToken);
  EXPECT_EQ(check_file_access({}, access, kToken, 101).error().message(),
            "signature is already expired");
  access.signature = "v1_x";
  EXPECT_EQ(check_file_access({}, access, kToken, 101).error().message(), "invalid signature");
}

TEST(TokenCheck, ExemptsExactlyTheseRequests) {
  EXPECT_TRUE(is_token_exempt("GET", "/health"));
  EXPECT_TRUE(is_token_exempt("GET", "/files"));
  EXPECT_TRUE(is_token_exempt("POST", "/files"));
  EXPECT_TRUE(is_token_exempt("POST", "/init"));
  EXPECT_TRUE(is_token_exempt("GET", "/journal"));
  EXPECT_FALSE(is_token_exempt("HEAD", "/files"));
  EXPECT_FALSE(is_token_exempt("GET", "/files/"));
  EXPECT_FALSE(is_token_exempt("POST", "/files/compose"));
  EXPECT_FALSE(is_token_exempt("GET", "/init"));
  EXPECT_FALSE(is_token_exempt("POST", "/process.Process/Start"));
}

TEST(TokenCheck, ComparesTheHeader) {
  EXPECT_TRUE(check_token({}, std::nullopt));
  EXPECT_TRUE(check_token({{"x-access-token", *kToken}}, kToken));
  EXPECT_FALSE(check_token({}, kToken));
  EXPECT_FALSE(check_token({{"X-Access-Token", ""}}, kToken));
}

TEST(BasicUser, TakesTheNameOnly) {
  EXPECT_EQ(basic_user({{"Authorization", "Basic dXNlcjo="}}), "user");
  EXPECT_EQ(basic_user({{"authorization", "basic cm9vdDpzZWNyZXQ="}}), "root");
  EXPECT_FALSE(basic_user({}));
  EXPECT_FALSE(basic_user({{"Authorization", "Bearer dXNlcjo="}}));
  EXPECT_FALSE(basic_user({{"Authorization", "Basic ???"}}));
  EXPECT_FALSE(basic_user({{"Authorization", "Basic dXNlcg=="}}));
}

TEST(Preflight, EchoesMethodAndHeaders) {
  http::RequestHead request;
  request.method = "OPTIONS";
  request.target = "/files";
  request.headers = {{"Origin", "https://a.example"},
                     {"Access-Control-Request-Method", "POST"},
                     {"Access-Control-Request-Headers", "x-access-token,content-type"}};
  const auto response = preflight_response(request);
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 204);
  EXPECT_EQ(response->headers.get("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(response->headers.get("Access-Control-Allow-Methods"), "POST");
  EXPECT_EQ(response->headers.get("Access-Control-Allow-Headers"), "x-access-token,content-type");
  EXPECT_EQ(response->headers.get("Access-Control-Max-Age"), "7200");
  EXPECT_FALSE(response->headers.has("Access-Control-Allow-Credentials"));

  request.headers.set("Access-Control-Request-Method", "TRACE");
  EXPECT_FALSE(preflight_response(request)->headers.has("Access-Control-Allow-Origin"));
  request.headers.remove("Access-Control-Request-Method");
  EXPECT_FALSE(preflight_response(request));
}

}  // namespace
}  // namespace alcove::agent
