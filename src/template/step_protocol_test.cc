// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "template/step_protocol.h"

#include <gtest/gtest.h>

namespace alcove::templates {
namespace {

TEST(StepFrameReader, PutsFramesTogetherFromPieces) {
  const std::string bytes = encode_step_frame(StepFrame::kBegin, encode_number(7)) +
                            encode_step_frame(StepFrame::kOutput, "text") +
                            encode_step_frame(StepFrame::kDone, "");
  StepFrameReader reader;
  std::vector<StepFrameReader::Frame> frames;
  for (const char byte : bytes) {
    reader.append(std::string_view(&byte, 1));
    auto frame = reader.next();
    ASSERT_TRUE(frame);
    if (*frame) frames.push_back(std::move(**frame));
  }
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(decode_number(frames[0].payload), 7u);
  EXPECT_EQ(frames[1].type, StepFrame::kOutput);
  EXPECT_EQ(frames[1].payload, "text");
  EXPECT_EQ(frames[2].type, StepFrame::kDone);
}

TEST(StepFrameReader, RefusesUnknownTypesAndEndlessFrames) {
  StepFrameReader unknown;
  unknown.append(std::string("z\0\0\0\0", 5));
  EXPECT_FALSE(unknown.next());
  StepFrameReader endless;
  endless.append(std::string("o\xff\xff\xff\x7f", 5));
  EXPECT_FALSE(endless.next());
}

TEST(DecodeNumber, NeedsFourBytes) {
  EXPECT_FALSE(decode_number("abc"));
  EXPECT_FALSE(decode_number("abcde"));
}

}  // namespace
}  // namespace alcove::templates
