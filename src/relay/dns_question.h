// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace alcove::relay {

// What may go to the host's name servers: questions about names (RFC 1035, 4.1), and nothing that
// changes a zone, copies one or negotiates with the server itself.
enum class QuestionVerdict {
  kPass,
  kRefused,    // a message that is none of these
  kMalformed,  // meant as a question, and none
  kNoMessage,  // nothing that anybody answers
};

// Header and question of a message are no longer than that.
inline constexpr size_t kLongestQuestion = 12 + 255 + 4;

// Reads header and question; what follows (EDNS) is not looked at. `message` may be cut after
// kLongestQuestion bytes.
QuestionVerdict judge_question(std::string_view message);

// What a name server answers to a message with one of the two verdicts in the middle.
std::string make_refusal(std::string_view message, QuestionVerdict verdict);

// By which a program finds the answer to its question; 0 for what is no message.
uint16_t message_id(std::string_view message);

// Questions on a TCP connection, each behind its length (RFC 1035, 4.2.2).
class QuestionStream {
 public:
  // Appends to `passed` what may go on. A message is held back until it is judged. False if there
  // was one that may not; the stream is of no use then.
  bool take(std::string_view bytes, std::string& passed);

 private:
  std::string head_;  // length, header and question of a message that is not judged yet
  size_t rest_ = 0;   // of one that is
};

}  // namespace alcove::relay
