// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "connect/json_writer.h"

#include "base/json_text.h"
#include "base/strings.h"

namespace alcove::connect {
namespace {

void append_escape(std::string& out, char c) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\x7f':
      out += c;
      return;
    default:
      out += "\\u00";
      out += kDigits[static_cast<unsigned char>(c) >> 4];
      out += kDigits[static_cast<unsigned char>(c) & 15];
  }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  size_t at = 0;
  for (;;) {
    const size_t run = plain_json_prefix(text.substr(at));
    out.append(text, at, run);
    at += run;
    if (at == text.size()) break;
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      append_escape(out, text[at]);
      ++at;
    } else if (const size_t length = utf8_sequence_length(text, at); length > 0) {
      out.append(text, at, length);
      at += length;
    } else {
      out += kReplacementCharacter;
      ++at;
    }
  }
  out += '"';
}

}  // namespace alcove::connect
