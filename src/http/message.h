// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/headers.h"

namespace alcove::http {

struct RequestHead {
  std::string method;
  // As it stands in the request line, still percent-encoded.
  std::string target;
  Headers headers;
  int version_minor = 1;

  // The target up to '?', and what follows it; both still encoded.
  std::string_view path() const { return std::string_view(target).substr(0, target.find('?')); }
  std::string_view query() const {
    const size_t at = target.find('?');
    return at == std::string::npos ? std::string_view{} : std::string_view(target).substr(at + 1);
  }
};

struct ResponseHead {
  int status = 200;
  // Neither Content-Length nor Transfer-Encoding: the framing adds them.
  Headers headers;
};

// A whole answer held in memory.
struct Response {
  int status = 200;
  Headers headers;
  std::string body;
};

// How a body is delimited on the wire. nullopt = chunked.
using BodyLength = std::optional<uint64_t>;

// Standard reason phrase, "Unknown" for others.
std::string_view reason_phrase(int status);

// True for statuses that never carry a body (1xx, 204, 304).
bool status_has_no_body(int status);

}  // namespace alcove::http
