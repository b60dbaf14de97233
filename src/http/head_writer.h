// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "http/message.h"

namespace alcove::http {

// Appends "Name: value" lines. Framing fields (Content-Length, Transfer-Encoding) are left out,
// and also `also_skipped`. kInternal if a field could break out of its line.
Result<void> append_fields(std::string& out, const Headers& headers,
                           std::string_view also_skipped = {});

// Appends "HTTP/1.1 200 OK" and the line end.
void append_status_line(std::string& out, int status);

// Appends a chunk's size line.
void append_chunk_size(std::string& out, size_t size);

// {"code":400,"message":"..."}: what the server itself answers. `message` is plain ASCII of ours.
std::string error_body(int status, std::string_view message);

}  // namespace alcove::http
