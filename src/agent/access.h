// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/headers.h"

namespace alcove::agent {

// Who may do what (protocol/envd.md section 4). A sandbox without a token is open.

// The requests that the token check leaves alone: they have their own rules, or none.
bool is_token_exempt(std::string_view method, std::string_view path);

// kUnauthenticated unless the request carries the token.
Result<void> check_token(const http::Headers& headers, const std::optional<std::string>& token);

// The name in "Authorization: Basic"; nothing for other kinds and for broken ones.
std::optional<std::string> basic_user(const http::Headers& headers);

enum class FileOperation { kRead, kWrite };

// What a /files request says about itself. Values as in the query, decoded.
struct FileAccess {
  FileOperation operation = FileOperation::kRead;
  std::string path;
  std::string username;
  std::optional<std::string> signature;
  std::optional<int64_t> expiration;
};

// "v1_" + base64(SHA-256("path:operation:username:token[:expiration]")).
std::string file_signature(const FileAccess& access, std::string_view token);

// A matching token in the headers, or a valid signature that has not expired.
Result<void> check_file_access(const http::Headers& headers, const FileAccess& access,
                               const std::optional<std::string>& token, int64_t unix_now);

}  // namespace alcove::agent
