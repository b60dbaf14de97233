// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "network/egress_policy.h"

#include <gtest/gtest.h>

namespace alcove::network {
namespace {

bool public_text(const char* text) {
  const auto address = IpAddress::parse(text);
  EXPECT_TRUE(address) << text;
  return address && is_public(*address);
}

TEST(EgressPolicy, PublicAddressesAreReached) {
  for (const char* text : {"8.8.8.8",
                           "1.1.1.1",
                           "9.255.255.255",
                           "11.0.0.0",
                           "100.63.255.255",
                           "100.128.0.0",
                           "126.255.255.255",
                           "128.0.0.0",
                           "168.63.129.15",
                           "168.63.129.17",
                           "169.253.255.255",
                           "169.255.0.0",
                           "172.15.255.255",
                           "172.32.0.0",
                           "192.0.1.0",
                           "192.0.2.1",
                           "192.88.98.255",
                           "192.88.100.0",
                           "192.167.255.255",
                           "192.169.0.0",
                           "198.17.255.255",
                           "198.20.0.0",
                           "198.51.100.7",
                           "203.0.113.200",
                           "223.255.255.255",
                           "::ffff:8.8.8.8",
                           "64:ff9b::8.8.8.8",
                           "64:ff9b::198.51.100.7",
                           "2001:2:1::1",
                           "2001:30::1",
                           "2001:db8::1",
                           "2606:4700::1111",
                           "2001:4860:4860::8888",
                           "3fff:ffff::1"}) {
    EXPECT_TRUE(public_text(text)) << text;
  }
}

TEST(EgressPolicy, EverythingElseIsNot) {
  for (const char* text :
       {"0.0.0.0",        "0.1.2.3",         "10.0.0.0",        "10.255.255.255",
        "100.64.0.0",     "100.127.255.255", "127.0.0.1",       "127.255.255.255",
        "169.254.0.0",    "169.254.169.254", "172.16.0.0",      "172.31.255.255",
        "192.0.0.0",      "192.0.0.255",     "192.168.0.0",     "192.88.99.0",
        "192.88.99.1",    "192.88.99.255",   "192.168.255.255", "198.18.0.0",
        "198.19.255.255", "224.0.0.1",       "239.255.255.255", "240.0.0.0",
        "255.255.255.255"}) {
    EXPECT_FALSE(public_text(text)) << text;
  }
  for (const char* text : {"::",         "::1",
                           "::2",        "::7f00:1",
                           "::8.8.8.8",  "fc00::",
                           "fd00:11::2", "fdff::1",
                           "fe80::1",    "febf::1",
                           "fec0::1",    "ff02::1",
                           "ff0e::1",    "2001:2::1",
                           "2001:10::1", "2001:1f:ffff::1",
                           "2001:20::1", "2001:2f:ffff::1",
                           "100::1",     "64:ff9b:1::8.8.8.8",
                           "4000::1",    "1fff::1"}) {
    EXPECT_FALSE(public_text(text)) << text;
  }
}

TEST(EgressPolicy, AddressesInsideAddressesAreJudged) {
  for (const char* text :
       {"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:0.0.0.0", "::ffff:169.254.169.254",
        "64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::169.254.169.254", "168.63.129.16",
        "::ffff:168.63.129.16", "64:ff9b::168.63.129.16", "64:ff9b::255.255.255.255",
        "2002:7f00:1::", "2002:a00:1::1", "2002:808:808::1", "2001::1", "2001:0:4136:e378::1"}) {
    EXPECT_FALSE(public_text(text)) << text;
  }
  EXPECT_EQ(*IpAddress::parse("::ffff:192.0.2.1"), *IpAddress::parse("192.0.2.1"));
  EXPECT_EQ(reached_by(*IpAddress::parse("64:ff9b::192.0.2.1"))->to_text(), "192.0.2.1");
  EXPECT_EQ(reached_by(*IpAddress::parse("2001:db8::1"))->to_text(), "2001:db8::1");
  EXPECT_FALSE(reached_by(*IpAddress::parse("2002::1")));
}

TEST(EgressPolicy, SurvivesItsText) {
  for (const auto reach : {EgressPolicy::Reach::kInternet, EgressPolicy::Reach::kNone}) {
    const EgressPolicy policy{reach};
    EXPECT_EQ(parse_egress_policy(to_text(policy)), policy);
  }
  EXPECT_FALSE(parse_egress_policy(""));
  EXPECT_FALSE(parse_egress_policy("all"));
}

TEST(IpAddress, ParsesAndPrints) {
  EXPECT_EQ(IpAddress::parse("192.0.2.1")->to_text(), "192.0.2.1");
  EXPECT_EQ(IpAddress::parse("2001:DB8::1")->to_text(), "2001:db8::1");
  for (const char* bad : {"", "1.2.3", "1.2.3.4.5", "::g", "localhost", "1.2.3.4 ", "fe80::1%lo"}) {
    EXPECT_FALSE(IpAddress::parse(bad)) << bad;
  }
}

TEST(Endpoint, SurvivesASocketAddress) {
  for (const char* text : {"192.0.2.1", "2001:db8::1"}) {
    const Endpoint endpoint{*IpAddress::parse(text), 443};
    sockaddr_storage storage;
    const socklen_t length = endpoint.to_sockaddr(storage);
    EXPECT_EQ(storage.ss_family, endpoint.family());
    EXPECT_EQ(length, endpoint.family() == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    EXPECT_EQ(*Endpoint::from(storage), endpoint);
  }
  EXPECT_FALSE(Endpoint::from({}));
}

}  // namespace
}  // namespace alcove::network
