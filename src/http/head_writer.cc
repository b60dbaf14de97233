// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "http/head_writer.h"

#include <charconv>

#include "base/strings.h"

namespace alcove::http {
namespace {

bool is_token(std::string_view name) {
  for (const char c : name) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
    if (!fine) return false;
  }
  return !name.empty();
}

bool is_field_value(std::string_view value) {
  for (const char c : value) {
    if (c != '\t' && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)) return false;
  }
  return true;
}

}  // namespace

Result<void> append_fields(std::string& out, const Headers& headers,
                           std::string_view also_skipped) {
  for (const auto& [name, value] : headers) {
    if (equal_ignoring_case(name, "Content-Length") ||
        equal_ignoring_case(name, "Transfer-Encoding") ||
        (!also_skipped.empty() && equal_ignoring_case(name, also_skipped))) {
      continue;
    }
    if (!is_token(name) || !is_field_value(value)) {
      return fail(Code::kInternal, cat("the header field ", name, " has forbidden characters"));
    }
    out += name;
    out += ": ";
    out += value;
    out += "\r\n";
  }
  return {};
}

void append_status_line(std::string& out, int status) {
  if (status == 200) {
    out += "HTTP/1.1 200 OK\r\n";
    return;
  }
  out += "HTTP/1.1 ";
  out += std::to_string(status);
  out += ' ';
  out += reason_phrase(status);
  out += "\r\n";
}

void append_chunk_size(std::string& out, size_t size) {
  char digits[16];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, size, /*base=*/16);
  out.append(digits, end);
  out += "\r\n";
}

std::string error_body(int status, std::string_view message) {
  return cat("{\"code\":", status, ",\"message\":\"", message, "\"}");
}

}  // namespace alcove::http
