// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/client_network.h"

#include <gtest/gtest.h>

namespace alcove::gateway {
namespace {

TEST(ClientNetwork, IsTheAddressOfIpv4AndTheNetworkOfIpv6) {
  EXPECT_EQ(client_network("192.0.2.7:54321"), "192.0.2.7");
  EXPECT_EQ(client_network("[2001:db8:1:2:3:4:5:6]:54321"), "2001:db8:1:2::/64");
  EXPECT_EQ(client_network("[2001:db8:1:2::1]:1"), client_network("[2001:db8:1:2:ffff::9]:2"));
  EXPECT_NE(client_network("[2001:db8:1:2::1]:1"), client_network("[2001:db8:1:3::1]:1"));
}

TEST(ClientNetwork, ClientsOfIpv4OnAListenerOfIpv6AreThemselves) {
  EXPECT_EQ(client_network("[::ffff:192.0.2.7]:54321"), "192.0.2.7");
}

TEST(ClientNetwork, WhatIsNoAddressIsTakenAsItIs) {
  EXPECT_EQ(client_network("unix"), "unix");
  EXPECT_EQ(client_network(""), "");
  EXPECT_EQ(client_network("[x"), "x");
}

}  // namespace
}  // namespace alcove::gateway
