// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/jupyter_message.h"

#include <gtest/gtest.h>

#include <string>

#include "base/hex.h"
#include "base/sha256.h"

namespace alcove::interpreter {
namespace {

JupyterMessage example() {
  return {.type = "execute_request",
          .id = "m1",
          .session = "s1",
          .parent_id = "p1",
          .date = "2026-11-18T12:00:00Z",
          .content = {{"code", "1 + 1 # \xC3\xA4"}}};
}

TEST(JupyterMessage, RoundTripBehindAnyPrefix) {
  ZmtpMessage frames = encode_jupyter_message(example(), "key");
  frames.insert(frames.begin(), {"identity", "topic"});
  frames.push_back("a buffer");
  const auto read = decode_jupyter_message(frames, "key");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->type, "execute_request");
  EXPECT_EQ(read->id, "m1");
  EXPECT_EQ(read->session, "s1");
  EXPECT_EQ(read->parent_id, "p1");
  EXPECT_EQ(read->date, "2026-11-18T12:00:00Z");
  EXPECT_EQ(read->content, example().content);
}

TEST(JupyterMessage, TheSignatureIsTheHmacOfTheFourFrames) {
  const ZmtpMessage frames = encode_jupyter_message(example(), "key");
  const std::string all = frames[2] + frames[3] + frames[4] + frames[5];
  const std::string_view pieces[] = {all};
  EXPECT_EQ(frames[1], to_hex(hmac_sha256("key", pieces)));
  EXPECT_EQ(encode_jupyter_message(example(), "")[1], "");
}

TEST(JupyterMessage, ChangedFramesAreRefused) {
  for (const size_t at : {1, 2, 3, 4, 5}) {
    ZmtpMessage frames = encode_jupyter_message(example(), "key");
    frames[at] += ' ';
    const auto read = decode_jupyter_message(frames, "key");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code(), Code::kUnauthenticated);
  }
  EXPECT_FALSE(decode_jupyter_message(encode_jupyter_message(example(), "other"), "key"));
}

TEST(JupyterMessage, MalformedIsRefusedAndLittleThingsAreNot) {
  EXPECT_FALSE(decode_jupyter_message({}, ""));
  EXPECT_FALSE(decode_jupyter_message({"<IDS|MSG>", "", "{}", "{}", "{}"}, ""));
  EXPECT_FALSE(decode_jupyter_message({"<IDS|MSG>", "", "[]", "{}", "{}", "{}"}, ""));
  EXPECT_FALSE(decode_jupyter_message({"<IDS|MSG>", "", "{}", "{}", "{}", "{"}, ""));
  EXPECT_TRUE(decode_jupyter_message({"<IDS|MSG>", "", "{}", "[]", "", "{}"}, ""));
  const auto broken_utf8 =
      decode_jupyter_message({"<IDS|MSG>", "", "{}", "{}", "{}", "{\"text\":\"a\xFF\"}"}, "");
  ASSERT_TRUE(broken_utf8);
  EXPECT_EQ(broken_utf8->content.at("text").as_string(), "a\xEF\xBF\xBD");
}

}  // namespace
}  // namespace alcove::interpreter
