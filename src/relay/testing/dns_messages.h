// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/strings.h"

namespace alcove::relay::testing {

inline constexpr uint16_t kTypeA = 1;
inline constexpr uint16_t kTypeAaaa = 28;
inline constexpr uint16_t kTypeIxfr = 251;
inline constexpr uint16_t kTypeAxfr = 252;

inline std::string dns_number(size_t value) {
  return {static_cast<char>(value >> 8), static_cast<char>(value)};
}

struct DnsQuestion {
  std::string_view name;
  uint16_t type = kTypeA;
  uint16_t id = 0x1234;
  uint8_t opcode = 0;
  // With EDNS: an OPT record with so much padding behind the question.
  int padding = -1;
};

inline std::string dns_message(const DnsQuestion& question) {
  std::string message = dns_number(question.id);
  message += static_cast<char>(question.opcode << 3 | 1);  // recursion desired
  message += '\x20';                                       // as dig: authentic data
  message += dns_number(1) + dns_number(0) + dns_number(0);
  message += dns_number(question.padding < 0 ? 0 : 1);
  for (const std::string_view label : split(question.name, '.')) {
    if (label.empty()) continue;
    message += static_cast<char>(label.size());
    message += label;
  }
  message += '\0';
  message += dns_number(question.type) + dns_number(1);
  if (question.padding >= 0) {
    const auto padding = static_cast<size_t>(question.padding);
    message += '\0' + dns_number(41) + dns_number(1232) + std::string(4, '\0');
    message += dns_number(4 + padding) + dns_number(12) + dns_number(padding);
    message.append(padding, '\0');
  }
  return message;
}

// A name server's answer, as far as the relay looks at it.
inline std::string dns_answer(std::string_view question, std::string_view text) {
  return cat(question.substr(0, 2), "\x81\x80", question.substr(4, 8), text);
}

// As it is sent by TCP.
inline std::string with_length(const std::string& message) {
  return dns_number(message.size()) + message;
}

}  // namespace alcove::relay::testing
