// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "http/message.h"

namespace alcove::http {

// What came of looking for a message head at the start of received bytes.
struct HeadParse {
  enum class Status { kNeedMore, kDone, kTooLarge, kInvalid };
  Status status = Status::kNeedMore;
  // kDone: the bytes that belong to the head, its last line end included.
  size_t size = 0;
  // kInvalid: why.
  std::string problem = {};
};

// Where the search for the end of a head goes on when more bytes have come. Starts at zero.
struct HeadScan {
  // The start of the first line that has not been seen completely.
  size_t line = 0;
  // Empty lines before the first line of the head: some clients send one after a body.
  size_t skipped = 0;
};

// Both are strict: line ends are CRLF, no NUL, no blank before a colon. A request with a folded
// line is refused; in an answer it is unfolded.
HeadParse parse_request_head(std::string_view data, size_t limit, HeadScan& scan,
                             RequestHead& head);

// The answer's version is kept beside the head.
struct ParsedResponse {
  ResponseHead head;
  int version_minor = 1;
};
HeadParse parse_response_head(std::string_view data, size_t limit, HeadScan& scan,
                              ParsedResponse& response);

}  // namespace alcove::http
