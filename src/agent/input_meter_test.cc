// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/input_meter.h"

#include <gtest/gtest.h>

#include <string>

#include <boost/asio/io_context.hpp>

#include "agent/testing/memory_body.h"
#include "net/testing/loop_runner.h"

namespace alcove::agent {
namespace {

class InputMeterTest : public ::testing::Test {
 protected:
  Result<std::string> read_all(MeteredBody& body) {
    return net::testing::run(loop_, body.read_all(1000));
  }

  boost::asio::io_context loop_{1};
  InputMeter meter_{100};
  testing::MemoryBody first_{std::string(80, 'a'), 10};
  testing::MemoryBody second_{std::string(80, 'b'), 10};
};

TEST_F(InputMeterTest, TooMuchOfAllTogetherIsRefused) {
  MeteredBody first(first_, meter_);
  EXPECT_EQ(read_all(first)->size(), 80u);
  EXPECT_EQ(meter_.held(), 80u);
  MeteredBody second(second_, meter_);
  const auto refused = read_all(second);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kResourceExhausted);
}

TEST_F(InputMeterTest, WhatBecomesMoreOrLessCountsAsThat) {
  MeteredBody first(first_, meter_);
  EXPECT_TRUE(read_all(first));
  EXPECT_TRUE(first.hold(60));
  EXPECT_EQ(meter_.held(), 60u);
  MeteredBody second(second_, meter_);
  EXPECT_TRUE(second.hold(40));
  const auto refused = second.hold(41);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kResourceExhausted);
  EXPECT_EQ(meter_.held(), 100u);
  first.give_back();
  EXPECT_TRUE(second.hold(41));
  EXPECT_EQ(meter_.held(), 41u);
}

TEST_F(InputMeterTest, WhatWasUsedMakesRoom) {
  {
    MeteredBody first(first_, meter_);
    EXPECT_TRUE(read_all(first));
    first.give_back();
    EXPECT_EQ(meter_.held(), 0u);
    MeteredBody second(second_, meter_);
    EXPECT_EQ(read_all(second)->size(), 80u);
  }
  EXPECT_EQ(meter_.held(), 0u);
}

}  // namespace
}  // namespace alcove::agent
