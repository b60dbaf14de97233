// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "connect/client.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <boost/asio/io_context.hpp>

#include "net/testing/loop_runner.h"

namespace alcove::connect {
namespace {

constexpr uint64_t kLimit = 1000;

// A body that arrives in pieces of three bytes.
class SlowBody final : public http::BodyReader {
 public:
  explicit SlowBody(std::string text) : text_(std::move(text)) {}
  Task<Result<size_t>> read(std::span<char> buffer) override {
    const size_t count = std::min({buffer.size(), text_.size(), size_t{3}});
    std::copy_n(text_.begin(), count, buffer.begin());
    text_.erase(0, count);
    co_return count;
  }
  std::optional<uint64_t> length() const override { return {}; }

 private:
  std::string text_;
};

std::string envelope(std::string_view message, char flags = 0) {
  std::string out;
  append_envelope(out, message);
  out[0] = flags;
  return out;
}

// The messages, then how the call ended ("ok", or code and text).
std::vector<std::string> read_all(std::string body) {
  boost::asio::io_context loop;
  SlowBody source(std::move(body));
  StreamReader reader(source, kLimit);
  std::vector<std::string> seen;
  for (;;) {
    auto message = net::testing::run(loop, reader.next());
    if (!message) {
      seen.push_back(std::string(code_name(message.error().code())) + " " +
                     message.error().message());
      return seen;
    }
    if (!*message) {
      seen.emplace_back("ok");
      return seen;
    }
    seen.push_back(std::move(**message));
  }
}

using Seen = std::vector<std::string>;

TEST(StreamReader, GivesMessagesUntilTheOrderlyEnd) {
  EXPECT_EQ(read_all(envelope("{}") + envelope("{\"a\":1}") + envelope("{}", 2)),
            (Seen{"{}", "{\"a\":1}", "ok"}));
}

TEST(StreamReader, GivesTheErrorThatTheEndCarries) {
  EXPECT_EQ(read_all(envelope(R"({"error":{"code":"not_found","message":"no such pid"}})", 2)),
            (Seen{"not_found no such pid"}));
}

TEST(StreamReader, CutAnswerIsAnError) {
  EXPECT_EQ(read_all(envelope("{}")), (Seen{"{}", "data_loss the answer was cut before its end"}));
  EXPECT_EQ(read_all(envelope("{}").substr(0, 4)).back(),
            "invalid_argument the body ends inside an envelope");
}

TEST(StreamReader, RefusesWhatIsTooLongCompressedOrNoJson) {
  EXPECT_EQ(read_all(std::string("\0\xff\xff\xff\xff", 5)).back().substr(0, 18),
            "resource_exhausted");
  EXPECT_EQ(read_all(envelope("{}", 1)).back().substr(0, 16), "invalid_argument");
  EXPECT_EQ(read_all(envelope("[", 2)).back().substr(0, 16), "invalid_argument");
}

TEST(ParseError, ReadsCodeAndText) {
  const Error error = parse_error(R"({"code":"unauthenticated","message":"no such user"})");
  EXPECT_EQ(error.code(), Code::kUnauthenticated);
  EXPECT_EQ(error.message(), "no such user");
}

TEST(ParseError, TakesWhatIsNoErrorObject) {
  for (const char* text : {"", "no", "[]", R"({"code":7})", R"({"code":"odd","message":1})"}) {
    EXPECT_EQ(parse_error(text).code(), Code::kUnknown) << text;
    EXPECT_FALSE(parse_error(text).message().empty()) << text;
  }
}

}  // namespace
}  // namespace alcove::connect
