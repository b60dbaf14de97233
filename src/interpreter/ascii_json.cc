// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/ascii_json.h"

#include <cstdint>

#include <boost/json/serialize.hpp>

#include "base/json_text.h"
#include "interpreter/utf8.h"

namespace alcove::interpreter {
namespace {

namespace json = boost::json;

void append_unit(std::string& out, uint32_t unit) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kDigits[(unit >> shift) & 15];
}

void append_code_point(std::string& out, uint32_t code_point) {
  if (code_point < 0x10000) {
    append_unit(out, code_point);
    return;
  }
  append_unit(out, 0xD800 + ((code_point - 0x10000) >> 10));
  append_unit(out, 0xDC00 + ((code_point - 0x10000) & 0x3FF));
}

// Of ASCII, what does not stand for itself.
void append_escape(std::string& out, char c) {
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
    default:
      append_unit(out, static_cast<uint32_t>(c));
  }
}

}  // namespace

void append_ascii_string(std::string& out, std::string_view text) {
  out.reserve(out.size() + text.size() + 2);
  out += '"';
  for (;;) {
    const size_t plain = plain_json_prefix(text);
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    if (static_cast<unsigned char>(text.front()) < 0x80) {
      append_escape(out, text.front());
      text.remove_prefix(1);
      continue;
    }
    const CodePoint next = decode_code_point(text);
    append_code_point(out, next.value);
    text.remove_prefix(next.length);
  }
  out += '"';
}

// The depth of a value is bounded by the parser that made it.
void append_ascii_json(std::string& out, const json::value& value) {
  switch (value.kind()) {
    case json::kind::string:
      append_ascii_string(out, value.get_string());
      return;
    case json::kind::array: {
      out += '[';
      bool first = true;
      for (const json::value& element : value.get_array()) {
        if (!first) out += ", ";
        first = false;
        append_ascii_json(out, element);
      }
      out += ']';
      return;
    }
    case json::kind::object: {
      out += '{';
      bool first = true;
      for (const auto& [key, member] : value.get_object()) {
        if (!first) out += ", ";
        first = false;
        append_ascii_string(out, key);
        out += ": ";
        append_ascii_json(out, member);
      }
      out += '}';
      return;
    }
    default:
      out += json::serialize(value);
  }
}

}  // namespace alcove::interpreter
