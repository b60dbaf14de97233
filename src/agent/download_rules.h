// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/headers.h"

namespace alcove::agent {

// What the headers of GET /files ask for (protocol/envd.md 3.3), as pure functions.

enum class Encoding { kIdentity, kGzip, kNotAcceptable };

// gzip only for a client that asks for nothing else: one that merely lists it gets the bytes as
// they are, which costs no CPU. Ranges and conditions are about the plain bytes.
Encoding choose_encoding(const http::Headers& headers);

// 304 or 412, if the conditions of the request say so; 0 to go on. There are no ETags.
int conditional_status(const http::Headers& headers, int64_t modified);

// By the name's extension; nothing for unknown ones.
std::optional<std::string_view> type_by_extension(std::string_view file_name);

}  // namespace alcove::agent
