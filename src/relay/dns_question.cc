// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "relay/dns_question.h"

#include <algorithm>
#include <optional>

namespace alcove::relay {
namespace {

constexpr size_t kHeaderSize = 12;
constexpr size_t kLengthSize = 2;
constexpr size_t kLongestName = 255;
constexpr size_t kLongestLabel = 63;

// Of the header's third byte.
constexpr uint8_t kIsAnswer = 0x80;
constexpr uint8_t kOpcode = 0x78;
constexpr uint8_t kRecursionDesired = 0x01;

constexpr uint8_t kFormatError = 1;
constexpr uint8_t kRefusedCode = 5;

// TKEY, TSIG, IXFR, AXFR, MAILB, MAILA: keys with the server, and whole zones (RFC 6895, 3.1).
constexpr uint16_t kFirstOfServer = 249;
constexpr uint16_t kLastOfServer = 254;

uint8_t byte_at(std::string_view bytes, size_t at) { return static_cast<uint8_t>(bytes[at]); }

uint16_t number_at(std::string_view bytes, size_t at) {
  return static_cast<uint16_t>(byte_at(bytes, at) << 8 | byte_at(bytes, at + 1));
}

// Where the name behind the header ends. It stands in full: there is nothing before it that it
// could refer to.
std::optional<size_t> end_of_name(std::string_view message) {
  size_t at = kHeaderSize;
  while (at < message.size() && at < kHeaderSize + kLongestName) {
    const uint8_t label = byte_at(message, at);
    if (label > kLongestLabel) return {};
    at += 1 + label;
    if (label == 0) return at;
  }
  return {};
}

std::optional<size_t> end_of_question(std::string_view message) {
  const auto name = end_of_name(message);
  if (!name || message.size() < *name + 4) return {};
  return *name + 4;
}

// How much of the message behind this length is needed to judge it.
size_t judged_size(std::string_view length) {
  return std::min<size_t>(number_at(length, 0), kLongestQuestion);
}

}  // namespace

QuestionVerdict judge_question(std::string_view message) {
  if (message.size() < kHeaderSize) return QuestionVerdict::kNoMessage;
  const uint8_t flags = byte_at(message, 2);
  if ((flags & kIsAnswer) != 0) return QuestionVerdict::kNoMessage;
  if ((flags & kOpcode) != 0) return QuestionVerdict::kRefused;
  const auto end = end_of_question(message);
  if (!end || number_at(message, 4) != 1) return QuestionVerdict::kMalformed;
  const uint16_t type = number_at(message, *end - 4);
  if (type >= kFirstOfServer && type <= kLastOfServer) return QuestionVerdict::kRefused;
  // Records in the sections of answers; those of EDNS have a section of their own.
  if (number_at(message, 6) != 0 || number_at(message, 8) != 0) return QuestionVerdict::kMalformed;
  return QuestionVerdict::kPass;
}

std::string make_refusal(std::string_view message, QuestionVerdict verdict) {
  const bool refused = verdict == QuestionVerdict::kRefused;
  // The question comes back, by which some programs know that the answer is theirs.
  const auto end = number_at(message, 4) == 1 ? end_of_question(message) : std::nullopt;
  std::string answer(message.substr(0, end.value_or(kHeaderSize)));
  const uint8_t kept = byte_at(message, 2) & (kOpcode | kRecursionDesired);
  answer[2] = static_cast<char>(kIsAnswer | kept);
  answer[3] = static_cast<char>(refused ? kRefusedCode : kFormatError);
  std::fill(answer.begin() + 4, answer.begin() + kHeaderSize, '\0');
  if (end) answer[5] = 1;
  return answer;
}

uint16_t message_id(std::string_view message) {
  return message.size() < kHeaderSize ? uint16_t{0} : number_at(message, 0);
}

bool QuestionStream::take(std::string_view bytes, std::string& passed) {
  while (!bytes.empty()) {
    if (rest_ > 0) {
      const size_t part = std::min(rest_, bytes.size());
      passed.append(bytes.substr(0, part));
      bytes.remove_prefix(part);
      rest_ -= part;
      continue;
    }
    const size_t needed =
        head_.size() < kLengthSize ? kLengthSize : kLengthSize + judged_size(head_);
    const size_t part = std::min(needed - head_.size(), bytes.size());
    head_.append(bytes.substr(0, part));
    bytes.remove_prefix(part);
    if (head_.size() < kLengthSize || head_.size() < kLengthSize + judged_size(head_)) continue;
    const std::string_view message = std::string_view(head_).substr(kLengthSize);
    if (judge_question(message) != QuestionVerdict::kPass) return false;
    rest_ = number_at(head_, 0) - message.size();
    passed += head_;
    head_.clear();
  }
  return true;
}

}  // namespace alcove::relay
