// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/zmtp_frame.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "interpreter/zmtp_command.h"

namespace alcove::interpreter {
namespace {

using Kind = ZmtpFrame::Kind;

std::string wire(Kind kind, std::string_view body, bool more) {
  return make_zmtp_frame_head(kind, body.size(), more).append(body);
}

TEST(ZmtpFrame, ReadsWhatItWritesInPiecesOfAnySize) {
  const std::string large(70000, 'x');
  const std::string bytes = wire(Kind::kMessage, "", true) + wire(Kind::kMessage, large, false) +
                            wire(Kind::kCommand, "\4PING12", false) +
                            wire(Kind::kMessage, std::string(255, 'y'), false);
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{9}, size_t{4096}, bytes.size()}) {
    ZmtpFrameDecoder decoder;
    std::vector<ZmtpFrame> frames;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      std::string_view rest = std::string_view(bytes).substr(at, piece);
      while (!rest.empty()) {
        auto frame = decoder.take(rest);
        ASSERT_TRUE(frame);
        if (*frame) frames.push_back(std::move(**frame));
      }
    }
    ASSERT_EQ(frames.size(), 4U);
    EXPECT_TRUE(frames[0].more);
    EXPECT_EQ(frames[0].body, "");
    EXPECT_EQ(frames[1].body, large);
    EXPECT_EQ(frames[2].kind, Kind::kCommand);
    EXPECT_EQ(frames[3].body.size(), 255U);
  }
}

TEST(ZmtpFrame, RefusesUnknownFlagsAndHugeFrames) {
  for (const std::string_view bad : {std::string_view("\x08\0", 2), std::string_view("\x05\0", 2),
                                     std::string_view("\x02\0\0\0\0\x10\0\0\1", 9),
                                     std::string_view("\x02\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 9),
                                     std::string_view("\x06\0\0\0\0\0\1\0\1", 9)}) {
    ZmtpFrameDecoder decoder;
    std::string_view rest = bad;
    EXPECT_FALSE(decoder.take(rest));
  }
}

TEST(ZmtpMessageAssembler, BoundsParts) {
  ZmtpMessageAssembler assembler;
  for (size_t i = 0; i < kZmtpMostParts; ++i) {
    ASSERT_TRUE(assembler.add({.kind = Kind::kMessage, .more = true, .body = "x"}));
  }
  EXPECT_FALSE(assembler.add({.kind = Kind::kMessage, .more = false, .body = "x"}));
}

TEST(ZmtpGreeting, AcceptsItselfAndRefusesOthers) {
  const std::string good = make_zmtp_greeting();
  EXPECT_TRUE(check_zmtp_greeting(good));
  std::string minor = good;
  minor[11] = 1;
  EXPECT_TRUE(check_zmtp_greeting(minor));
  std::string old = good;
  old[10] = 1;
  EXPECT_FALSE(check_zmtp_greeting(old));
  std::string curve = good;
  curve.replace(12, 5, "CURVE");
  EXPECT_FALSE(check_zmtp_greeting(curve));
  EXPECT_FALSE(check_zmtp_greeting("HTTP/1.1 200 OK"));
  EXPECT_FALSE(check_zmtp_greeting(std::string(64, 'H')));
}

TEST(ZmtpCommand, ReadyRoundTrip) {
  const std::string body = make_zmtp_ready({.socket_type = "DEALER", .identity = "me"});
  const auto command = parse_zmtp_command(body);
  ASSERT_TRUE(command);
  EXPECT_EQ(command->name, "READY");
  const auto ready = parse_zmtp_ready(command->data);
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->socket_type, "DEALER");
  EXPECT_EQ(ready->identity, "me");
  // Every cut in the middle of a property is noticed.
  size_t accepted = 0;
  for (size_t size = 0; size < command->data.size(); ++size) {
    if (parse_zmtp_ready(command->data.substr(0, size))) ++accepted;
  }
  EXPECT_EQ(accepted, 2U);
}

TEST(ZmtpCommand, PongRepeatsTheContext) {
  const auto pong = make_zmtp_pong(std::string_view("\0\1abc", 5));
  ASSERT_TRUE(pong);
  EXPECT_EQ(*pong, "\4PONGabc");
  EXPECT_FALSE(make_zmtp_pong("x"));
  EXPECT_FALSE(make_zmtp_pong(std::string(19, 'x')));
}

}  // namespace
}  // namespace alcove::interpreter
