// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/waiting_requests.h"

#include <gtest/gtest.h>

#include <vector>

namespace alcove::gateway {
namespace {

using Full = WaitingRequests::Full;

const SandboxId kOne("ione");
const SandboxId kTwo("itwo");

TEST(WaitingRequests, AreBoundedForASandboxAndInAll) {
  WaitingRequests requests({.of_sandbox = 2, .all = 3});
  std::vector<WaitingRequests::Place> places;
  for (int i = 0; i < 2; ++i) {
    auto place = requests.enter(kOne);
    ASSERT_TRUE(place);
    places.push_back(*std::move(place));
  }
  EXPECT_EQ(requests.enter(kOne).error(), Full::kSandbox);
  auto other = requests.enter(kTwo);
  ASSERT_TRUE(other);
  places.push_back(*std::move(other));
  EXPECT_EQ(requests.enter(kTwo).error(), Full::kServer);
  EXPECT_EQ(requests.count(), 3u);

  places.pop_back();
  EXPECT_TRUE(requests.enter(kTwo));
  EXPECT_EQ(requests.enter(kOne).error(), Full::kSandbox);
  places.clear();
  EXPECT_EQ(requests.count(), 0u);
  EXPECT_TRUE(requests.enter(kOne));
}

TEST(WaitingRequests, AMovedPlaceIsLeftOnce) {
  WaitingRequests requests;
  {
    auto place = requests.enter(kOne);
    ASSERT_TRUE(place);
    const WaitingRequests::Place moved = *std::move(place);
    EXPECT_EQ(requests.count(), 1u);
  }
  EXPECT_EQ(requests.count(), 0u);
}

}  // namespace
}  // namespace alcove::gateway
