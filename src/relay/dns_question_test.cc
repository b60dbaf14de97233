// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "relay/dns_question.h"

#include <gtest/gtest.h>
#include <resolv.h>

#include <string>

#include "relay/testing/dns_messages.h"

namespace alcove::relay {
namespace {

using testing::dns_message;
using testing::with_length;
using Verdict = QuestionVerdict;

// Changes one byte.
std::string with(std::string message, size_t at, char value) {
  message[at] = value;
  return message;
}

TEST(DnsQuestion, WhatProgramsAskPasses) {
  for (const uint16_t type : {1, 2, 5, 6, 12, 15, 16, 28, 33, 65, 255, 257}) {
    EXPECT_EQ(judge_question(dns_message({.name = "example.com", .type = type})), Verdict::kPass);
  }
  for (const int padding : {0, 8, 468, 60'000}) {
    const std::string message = dns_message({.name = "example.com", .padding = padding});
    EXPECT_EQ(judge_question(message), Verdict::kPass);
    EXPECT_EQ(judge_question(std::string_view(message).substr(0, kLongestQuestion)),
              Verdict::kPass);
  }
  const std::string label(63, 'x');
  const std::string longest = label + "." + label + "." + label + "." + std::string(61, 'x');
  EXPECT_EQ(judge_question(dns_message({.name = longest})), Verdict::kPass);
  EXPECT_EQ(dns_message({.name = longest}).size(), kLongestQuestion);
  // The root, and bytes that no host name has.
  EXPECT_EQ(judge_question(dns_message({.name = ""})), Verdict::kPass);
  EXPECT_EQ(judge_question(dns_message({.name = std::string_view("_dmarc\0\xff\x20.x", 11)})),
            Verdict::kPass);
}

TEST(DnsQuestion, WhatTheCLibraryAsksPasses) {
  unsigned char bytes[512];
  for (const char* name : {"example.com", "example.com.", ".", "xn--bcher-kva.example"}) {
    const int size = ::res_mkquery(ns_o_query, name, ns_c_in, ns_t_aaaa, nullptr, 0, nullptr, bytes,
                                   sizeof bytes);
    ASSERT_GT(size, 0) << name;
    EXPECT_EQ(judge_question({reinterpret_cast<char*>(bytes), static_cast<size_t>(size)}),
              Verdict::kPass)
        << name;
  }
}

TEST(DnsQuestion, OtherOperationsAndWholeZonesAreRefused) {
  for (uint8_t opcode = 1; opcode < 16; ++opcode) {
    EXPECT_EQ(judge_question(dns_message({.name = "example.com", .opcode = opcode})),
              Verdict::kRefused)
        << int{opcode};
  }
  for (uint16_t type = 249; type <= 254; ++type) {
    EXPECT_EQ(judge_question(dns_message({.name = "example.com", .type = type})), Verdict::kRefused)
        << type;
  }
}

TEST(DnsQuestion, WhatDoesNotParseIsMalformed) {
  const std::string good = dns_message({.name = "example.com"});
  for (size_t size = 12; size < good.size(); ++size) {
    EXPECT_EQ(judge_question(good.substr(0, size)), Verdict::kMalformed) << size;
  }
  EXPECT_EQ(judge_question(with(good, 5, 0)), Verdict::kMalformed);        // no question
  EXPECT_EQ(judge_question(with(good, 5, 2)), Verdict::kMalformed);        // two
  EXPECT_EQ(judge_question(with(good, 4, 1)), Verdict::kMalformed);        // 257
  EXPECT_EQ(judge_question(with(good, 7, 1)), Verdict::kMalformed);        // an answer
  EXPECT_EQ(judge_question(with(good, 9, 1)), Verdict::kMalformed);        // an authority
  EXPECT_EQ(judge_question(with(good, 12, '\xc0')), Verdict::kMalformed);  // refers to itself
  EXPECT_EQ(judge_question(with(good, 12, '\x41')), Verdict::kMalformed);  // a label of no kind
  EXPECT_EQ(judge_question(with(good, 12, '\x3f')), Verdict::kMalformed);  // beyond the end
  const std::string label(63, 'x');
  const std::string too_long = label + "." + label + "." + label + "." + std::string(62, 'x');
  EXPECT_EQ(judge_question(dns_message({.name = too_long})), Verdict::kMalformed);
}

TEST(DnsQuestion, AnswersAndLessThanAHeaderAreNoMessage) {
  const std::string good = dns_message({.name = "example.com"});
  for (size_t size = 0; size < 12; ++size) {
    EXPECT_EQ(judge_question(good.substr(0, size)), Verdict::kNoMessage) << size;
    EXPECT_EQ(message_id(good.substr(0, size)), 0);
  }
  EXPECT_EQ(judge_question(with(good, 2, '\x81')), Verdict::kNoMessage);
  EXPECT_EQ(judge_question(std::string(512, '\xff')), Verdict::kNoMessage);
}

TEST(DnsQuestion, RefusalsAreAnswersToTheQuestion) {
  const std::string transfer =
      dns_message({.name = "example.com", .type = testing::kTypeAxfr, .padding = 10});
  const std::string refused = make_refusal(transfer, Verdict::kRefused);
  const std::string question = transfer.substr(12, 17);
  EXPECT_EQ(refused, std::string("\x12\x34\x81\x05\0\1\0\0\0\0\0\0", 12) + question);
  const std::string update = dns_message({.name = "example.com", .opcode = 5});
  EXPECT_EQ(make_refusal(update, Verdict::kRefused),
            std::string("\x12\x34\xa9\x05\0\1\0\0\0\0\0\0", 12) + question.substr(0, 13) +
                std::string("\0\1\0\1", 4));
  const std::string cut = transfer.substr(0, 20);
  EXPECT_EQ(make_refusal(cut, Verdict::kMalformed),
            std::string("\x12\x34\x81\x01\0\0\0\0\0\0\0\0", 12));
}

// What comes out of pieces of this size; "(refused)" behind it if the stream ended there.
std::string pass(const std::string& stream, size_t piece) {
  QuestionStream questions;
  std::string passed;
  for (size_t at = 0; at < stream.size(); at += piece) {
    if (!questions.take(std::string_view(stream).substr(at, piece), passed)) {
      return passed + "(refused)";
    }
  }
  return passed;
}

TEST(QuestionStream, QuestionsPassInPiecesOfAnySize) {
  std::string stream;
  for (const int padding : {-1, 0, 300, 5000}) {
    stream += with_length(dns_message({.name = "example.com", .padding = padding}));
  }
  for (const size_t piece : {1u, 2u, 3u, 30u, 273u, 274u, 4096u, 100'000u}) {
    EXPECT_EQ(pass(stream, piece), stream) << piece;
  }
}

TEST(QuestionStream, WhatIsNoQuestionStaysBehind) {
  const std::string good = with_length(dns_message({.name = "example.com"}));
  for (const std::string& bad :
       {with_length(dns_message({.name = "example.com", .type = testing::kTypeAxfr})),
        with_length(dns_message({.name = "example.com", .opcode = 5, .padding = 2000})),
        with_length(""), with_length("short"),
        std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n") + std::string(20'000, 'x')}) {
    for (const size_t piece : {1u, 50u, 100'000u}) {
      EXPECT_EQ(pass(good + bad, piece), good + "(refused)") << piece;
    }
  }
  // Not before it is judged.
  const std::string cut = good.substr(0, good.size() - 1);
  EXPECT_EQ(pass(good + cut, 7), good);
}

}  // namespace
}  // namespace alcove::relay
