// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/gzip.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "net/testing/loop_runner.h"

namespace alcove::agent {
namespace {

// A body in memory that arrives in pieces of `step` bytes.
class FakeBody final : public http::BodyReader {
 public:
  FakeBody(std::string content, size_t step) : content_(std::move(content)), step_(step) {}
  Task<Result<size_t>> read(std::span<char> buffer) override {
    const size_t count = std::min({buffer.size(), step_, content_.size() - at_});
    std::copy_n(content_.data() + at_, count, buffer.data());
    at_ += count;
    co_return count;
  }
  std::optional<uint64_t> length() const override { return content_.size(); }

 private:
  std::string content_;
  size_t step_;
  size_t at_ = 0;
};

std::string compress(const std::string& text) {
  GzipWriter writer;
  std::string out = writer.add(text.substr(0, text.size() / 2));
  out += writer.add(text.substr(text.size() / 2));
  return out + writer.finish();
}

Result<std::string> unpack(const std::string& packed, size_t step) {
  boost::asio::io_context loop;
  FakeBody inner(packed, step);
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

}  // namespace
}  // namespace alcove::agent
