// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "http/framing.h"

#include <optional>
#include <string>
#include <string_view>

#include "base/strings.h"

namespace alcove::http {
namespace {

// Reg-name, IPv4 or [IPv6] with an optional port. What else may come here would be a risk for
// those who build names or URLs from it.
bool is_host(std::string_view host) {
  for (const char c : host) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      std::string_view("-._~:[]%!$&'()*+;=").find(c) != std::string_view::npos;
    if (!fine) return false;
  }
  return true;
}

// http://host/path becomes /path, with the host returned (RFC 9112 section 3.2.2).
Result<std::optional<std::string>> to_origin_form(RequestHead& head) {
  if (head.target.starts_with('/')) return std::nullopt;
  const size_t scheme = head.target.find("://");
  const auto bad = fail(Code::kInvalidArgument, "invalid request target");
  if (scheme == std::string::npos) return bad;
  const std::string_view name = std::string_view(head.target).substr(0, scheme);
  if (!equal_ignoring_case(name, "http") && !equal_ignoring_case(name, "https")) return bad;
  const size_t start = scheme + 3;
  const size_t end = std::min(head.target.find_first_of("/?", start), head.target.size());
  std::string host = head.target.substr(start, end - start);
  if (host.empty() || !is_host(host)) return bad;
  head.target.erase(0, end);
  if (!head.target.starts_with('/')) head.target.insert(0, 1, '/');
  return host;
}

Result<void> check_host(RequestHead& head) {
  const size_t count = head.headers.count("Host");
  if (count > 1) return fail(Code::kInvalidArgument, "Invalid host");
  if (count == 0 && head.version_minor >= 1) {
    return fail(Code::kInvalidArgument, "missing Host header");
  }
  if (count == 1 && !is_host(*head.headers.get("Host"))) {
    return fail(Code::kInvalidArgument, "Invalid host");
  }
  ALCOVE_TRY_ASSIGN(const auto host, to_origin_form(head));
  if (host) head.headers.set("Host", *host);
  return {};
}

// Digits only: no sign, no list, no blanks.
Result<std::optional<uint64_t>> content_length(const Headers& headers) {
  const auto value = headers.get("Content-Length");
  if (!value) return std::nullopt;
  const auto length = parse_number<uint64_t>(*value);
  // The top bit is left free so that sums of lengths cannot overflow.
  if (!length || *length > UINT64_MAX / 2) {
    return fail(Code::kInvalidArgument, "invalid Content-Length");
  }
  return length;
}

Result<bool> is_chunked(const Headers& headers) {
  const size_t count = headers.count("Transfer-Encoding");
  if (count == 0) return false;
  if (count > 1 || !equal_ignoring_case(*headers.get("Transfer-Encoding"), "chunked")) {
    return fail(Code::kInvalidArgument, "unsupported Transfer-Encoding");
  }
  if (headers.has("Content-Length")) {
    return fail(Code::kInvalidArgument, "both Transfer-Encoding and Content-Length");
  }
  return true;
}

}  // namespace

Result<Framing> check_request(RequestHead& head) {
  if (head.method == "CONNECT") return fail(Code::kInvalidArgument, "CONNECT is not supported");
  ALCOVE_TRY(check_host(head));
  ALCOVE_TRY_ASSIGN(const bool chunked, is_chunked(head.headers));
  if (chunked) {
    if (head.version_minor < 1) {
      return fail(Code::kInvalidArgument, "Transfer-Encoding in an HTTP/1.0 request");
    }
    return Framing{.kind = Framing::Kind::kChunked};
  }
  if (head.headers.count("Content-Length") > 1) {
    return fail(Code::kInvalidArgument, "several Content-Length headers");
  }
  ALCOVE_TRY_ASSIGN(const auto length, content_length(head.headers));
  if (!length) return Framing{};
  return Framing{.kind = Framing::Kind::kLength, .length = *length};
}

Result<Framing> response_framing(const ResponseHead& head, int version_minor,
                                 std::string_view request_method) {
  // Checked even where no body follows: a broken head is broken.
  ALCOVE_TRY_ASSIGN(const bool chunked, is_chunked(head.headers));
  ALCOVE_TRY_ASSIGN(const auto length, content_length(head.headers));
  for (const auto& [name, value] : head.headers) {
    // Equal repetitions are harmless here, because the head is written anew; different ones are
    // not.
    if (equal_ignoring_case(name, "Content-Length") && parse_number<uint64_t>(value) != length) {
      return fail(Code::kInvalidArgument, "different Content-Length headers");
    }
  }
  if (request_method == "HEAD" || status_has_no_body(head.status)) return Framing{};
  if (chunked && version_minor < 1) {
    return fail(Code::kInvalidArgument, "Transfer-Encoding in an HTTP/1.0 answer");
  }
  if (chunked) return Framing{.kind = Framing::Kind::kChunked};
  if (length) return Framing{.kind = Framing::Kind::kLength, .length = *length};
  return Framing{.kind = Framing::Kind::kUntilClose};
}

bool wants_keep_alive(const Headers& headers, int version_minor) {
  if (headers.has_token("Connection", "close")) return false;
  return version_minor >= 1 || headers.has_token("Connection", "keep-alive");
}

}  // namespace alcove::http
