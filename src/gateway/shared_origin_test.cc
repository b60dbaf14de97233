// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/shared_origin.h"

#include <gmock/gmock.h>

#include "gateway/testing/gateway_fixture.h"

namespace alcove::gateway {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kPolicyLine[] = "Content-Security-Policy: sandbox allow-scripts allow-forms\r\n";

TEST(PathAddress, IsTakenApartAtSlashes) {
  const auto whole = find_path_address("/_sandbox/ione/8000/a/b");
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->id, "ione");
  EXPECT_EQ(whole->port, "8000");
  EXPECT_EQ(whole->prefix, "/_sandbox/ione/8000");
  EXPECT_EQ(find_path_address("/_sandbox/ione/8000")->prefix, "/_sandbox/ione/8000");
  EXPECT_EQ(find_path_address("/_sandbox/ione")->port, "");
  EXPECT_EQ(find_path_address("/_sandbox/ione/")->port, "");
  EXPECT_EQ(find_path_address("/_sandbox/")->id, "");
  EXPECT_FALSE(find_path_address("/_sandbox"));
  EXPECT_FALSE(find_path_address("//_sandbox/ione/8000/"));
  EXPECT_FALSE(find_path_address("/%5fsandbox/ione/8000/"));
}

TEST(LeaveShared, RedirectsStayBelowThePrefix) {
  const auto led = [](std::string location) {
    http::Headers headers{{"Location", std::move(location)}};
    leave_shared(headers, "/_sandbox/ione/8000", "127.0.0.1:3000");
    return std::string(*headers.get("Location"));
  };
  EXPECT_EQ(led("/login?next=/"), "/_sandbox/ione/8000/login?next=/");
  EXPECT_EQ(led("http://127.0.0.1:3000/x"), "/_sandbox/ione/8000/x");
  EXPECT_EQ(led("next"), "next");
  EXPECT_EQ(led("?page=2"), "?page=2");
  EXPECT_EQ(led("https://example.org/x"), "https://example.org/x");
  EXPECT_EQ(led("//example.org/x"), "//example.org/x");
  EXPECT_EQ(led("/\\example.org/x"), "/\\example.org/x");
}

TEST(LeaveShared, NothingIsLeftForTheOrigin) {
  http::Headers headers{{"Set-Cookie", "a=b"},
                        {"set-cookie", "c=d"},
                        {"Service-Worker-Allowed", "/"},
                        {"Clear-Site-Data", "\"*\""},
                        {"Alt-Svc", "h2=\":1\""},
                        {"Content-Security-Policy", "sandbox allow-same-origin"},
                        {"X-Own", "1"}};
  leave_shared(headers, "/_sandbox/ione/8000", "");
  EXPECT_EQ(headers.size(), 3U);
  EXPECT_EQ(headers.get("X-Own"), "1");
  // A browser takes the stricter of the two.
  EXPECT_EQ(headers.count("Content-Security-Policy"), 2U);
}

class SharedOriginTest : public GatewayTest {
 protected:
  static std::string get(std::string_view target, std::string_view more = {}) {
    return cat("GET ", target, " HTTP/1.1\r\nHost: 127.0.0.1:3000\r\n", more, "\r\n");
  }
};

TEST_F(SharedOriginTest, ServiceSeesThePathBehindThePrefixAndNoCookies) {
  RawPeer client = connect();
  client.send(get("/_sandbox/ione/8000/a%2Fb?c=d", "Cookie: secret=1\r\nX-Mine: 1\r\n"));
  RawPeer service = service_.accept();
  EXPECT_EQ(service.read_until("\r\n\r\n"),
            "GET /a%2Fb?c=d HTTP/1.1\r\nHost: 127.0.0.1:3000\r\nX-Mine: 1\r\n"
            "X-Forwarded-Prefix: /_sandbox/ione/8000\r\n\r\n");
  service.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nSet-Cookie: a=b\r\n\r\nok");
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr(kPolicyLine));
  EXPECT_THAT(head, Not(HasSubstr("Set-Cookie")));
  EXPECT_EQ(client.read_bytes(2), "ok");
}

TEST_F(SharedOriginTest, PathWithoutItsSlashIsLedThere) {
  RawPeer client = connect();
  client.send(get("/_sandbox/ione/8000?x=1"));
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 308 "));
  EXPECT_THAT(head, HasSubstr("Location: /_sandbox/ione/8000/?x=1\r\n"));
}

TEST_F(SharedOriginTest, ServiceWorkersAreRefused) {
  for (const char* field : {"Service-Worker: script\r\n", "Sec-Fetch-Dest: serviceworker\r\n"}) {
    RawPeer client = connect();
    client.send(get("/_sandbox/ione/8000/sw.js", field));
    EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 403 "));
  }
}

TEST_F(SharedOriginTest, ControlPathsOfTheAgentStayClosed) {
  for (const char* path : {"/init", "//init", "/x/../init", "/%69nit"}) {
    RawPeer client = connect();
    client.send(get(cat("/_sandbox/ione/49983", path)));
    EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  }
}

TEST_F(SharedOriginTest, OwnAnswersCarryThePolicyToo) {
  for (const char* target : {"/_sandbox/inobody/8000/", "/_sandbox/ione/8123/"}) {
    RawPeer client = connect();
    client.send(get(target, "User-Agent: Mozilla\r\n"));
    const std::string head = client.read_until("\r\n\r\n");
    EXPECT_THAT(head, StartsWith("HTTP/1.1 502 "));
    EXPECT_THAT(head, HasSubstr(kPolicyLine));
    EXPECT_THAT(head, HasSubstr("text/html"));
  }
}

TEST_F(SharedOriginTest, UpgradesPass) {
  RawPeer client = connect();
  client.send(get("/_sandbox/ione/8000/ws", "Connection: Upgrade\r\nUpgrade: websocket\r\n"));
  RawPeer service = service_.accept();
  EXPECT_THAT(service.read_until("\r\n\r\n"), StartsWith("GET /ws HTTP/1.1\r\n"));
  service.send("HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhi");
  EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 101 "));
  EXPECT_EQ(client.read_bytes(2), "hi");
}

}  // namespace
}  // namespace alcove::gateway
