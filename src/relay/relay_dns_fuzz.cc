// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// What a sandbox sends to its name server, as one datagram and as a stream.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "relay/dns_question.h"

namespace {

using namespace alcove::relay;

void check_message(std::string_view message) {
  const QuestionVerdict verdict = judge_question(message);
  // The rest of a long message changes nothing.
  ALCOVE_ASSERT(judge_question(message.substr(0, kLongestQuestion)) == verdict);
  if (verdict == QuestionVerdict::kPass) {
    ALCOVE_ASSERT(message.size() >= 17);
    // A question of a program, and one only.
    ALCOVE_ASSERT((message[2] & 0xf8) == 0 && message[4] == 0 && message[5] == 1);
  } else if (verdict != QuestionVerdict::kNoMessage) {
    const std::string answer = make_refusal(message, verdict);
    ALCOVE_ASSERT(answer.size() >= 12 && answer.size() <= kLongestQuestion);
    ALCOVE_ASSERT(message_id(answer) == message_id(message));
    // Nobody answers an answer.
    ALCOVE_ASSERT(judge_question(answer) == QuestionVerdict::kNoMessage);
  }
}

// What comes out of a stream that comes in such pieces; nothing if it ended there.
std::optional<std::string> pass(std::string_view stream, size_t piece) {
  QuestionStream questions;
  std::string passed;
  for (size_t at = 0; at < stream.size(); at += piece) {
    if (!questions.take(stream.substr(at, piece), passed)) return {};
  }
  return passed;
}

void check_stream(std::string_view stream) {
  const auto whole = pass(stream, stream.size());
  ALCOVE_ASSERT(whole == pass(stream, 1));
  // Nothing is added, and no more held back than what is needed to judge a message.
  if (!whole) return;
  ALCOVE_ASSERT(stream.starts_with(*whole));
  ALCOVE_ASSERT(stream.size() - whole->size() < 2 + kLongestQuestion);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_message(bytes);
  if (!bytes.empty()) check_stream(bytes);
  return 0;
}
