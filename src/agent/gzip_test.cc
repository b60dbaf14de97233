// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/gzip.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "agent/testing/memory_body.h"
#include "net/testing/loop_runner.h"

namespace alcove::agent {
namespace {

std::string compress(const std::string& text) {
  GzipWriter writer;
  std::string out = writer.add(text.substr(0, text.size() / 2));
  out += writer.add(text.substr(text.size() / 2));
  return out + writer.finish();
}

Result<std::string> unpack(const std::string& packed, size_t step) {
  boost::asio::io_context loop;
  testing::MemoryBody inner(packed, step);
  GunzipBody body(inner);
  return net::testing::run(loop, body.read_all(100u << 20));
}

TEST(Gzip, RoundTripInAnyPieces) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += std::to_string(i * 7919);
  const std::string packed = compress(text);
  EXPECT_LT(packed.size(), text.size());
  for (const size_t step : {size_t{1}, size_t{7}, size_t{4096}, packed.size()}) {
    const auto back = unpack(packed, step);
    ASSERT_TRUE(back) << back.error().message();
    EXPECT_EQ(*back, text);
  }
  EXPECT_EQ(*unpack(compress(""), 3), "");
}

TEST(Gzip, SeveralMembersAreJoined) {
  EXPECT_EQ(*unpack(compress("hello ") + compress("world"), 5), "hello world");
}

TEST(Gzip, BrokenDataIsInvalid) {
  const std::string packed = compress("hello world");
  EXPECT_EQ(unpack("not gzip at all", 4).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(unpack("", 4).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(unpack(packed.substr(0, packed.size() - 3), 4).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(unpack(packed + "junk", 4).error().code(), Code::kInvalidArgument);
}

TEST(Gzip, BombsTakeNoMoreMemoryThanTheBuffer) {
  const std::string packed = compress(std::string(50u << 20, '\0'));
  EXPECT_EQ(unpack(packed, 4096)->size(), 50u << 20);
}

Task<void> take_all(http::BodyReader& body, size_t& total) {
  char buffer[64 * 1024];
  for (;;) {
    const auto count = co_await body.read(buffer);
    if (!count || *count == 0) co_return;
    total += *count;
  }
}

TEST(Gzip, WhoIgnoresABombLeavesOthersTheirTurn) {
  boost::asio::io_context loop{1};
  testing::MemoryBody inner(compress(std::string(50u << 20, '\0')), 4096);
  GunzipBody body(inner);
  size_t total = 0;
  boost::asio::co_spawn(loop, take_all(body, total), boost::asio::detached);
  size_t turns = 0;
  while (loop.poll_one() > 0) ++turns;
  EXPECT_EQ(total, 50u << 20);
  EXPECT_GT(turns, 100u);
}

}  // namespace
}  // namespace alcove::agent
