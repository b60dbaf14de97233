// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/ingress.h"

#include <gtest/gtest.h>

#include "gateway/routing.h"

namespace alcove::gateway {
namespace {

TEST(Ingress, IsReadFromTheStoredObject) {
  const Ingress ingress =
      parse_ingress(R"({"maskRequestHost":"a:${PORT}","httpsPorts":[8443,443]})");
  EXPECT_EQ(ingress.mask_host, "a:${PORT}");
  EXPECT_TRUE(ingress.speaks_tls(443));
  EXPECT_TRUE(ingress.speaks_tls(8443));
  EXPECT_FALSE(ingress.speaks_tls(8000));
  for (const char* nothing : {"", "{}", "[]", "nonsense", R"({"httpsPorts":null})",
                              R"({"httpsPorts":["443",0,65536,1.5]})"}) {
    EXPECT_FALSE(parse_ingress(nothing).speaks_tls(443)) << nothing;
  }
  // The agent speaks no TLS, whatever is stored.
  EXPECT_FALSE(parse_ingress(R"({"httpsPorts":[49983]})").speaks_tls(kAgentPort));
}

TEST(Ingress, ServerNameIsTheHostIfThatIsAName) {
  EXPECT_EQ(server_name("8443-abc.alcove.localhost:3000"), "8443-abc.alcove.localhost");
  EXPECT_EQ(server_name("localhost"), "localhost");
  EXPECT_EQ(server_name("under_score.example"), "under_score.example");
  for (const char* none : {"", "127.0.0.1", "127.0.0.1:80", "[::1]:80", "::1", "a b", "a%00.b"}) {
    EXPECT_EQ(server_name(none), "") << none;
  }
  EXPECT_EQ(server_name(std::string(300, 'a')), "");
}

}  // namespace
}  // namespace alcove::gateway
