// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/access.h"

#include "base/base64.h"
#include "base/sha256.h"
#include "base/strings.h"

namespace alcove::agent {

bool is_token_exempt(std::string_view method, std::string_view path) {
  if (method == "GET") return path == "/health" || path == "/files" || path == "/journal";
  if (method == "POST") return path == "/files" || path == "/init";
  return false;
}

Result<void> check_token(const http::Headers& headers, const std::optional<std::string>& token) {
  if (!token) return {};
  const auto given = headers.get("X-Access-Token");
  if (given && equal_constant_time(*given, *token)) return {};
  return fail(Code::kUnauthenticated,
              "unauthorized access, please provide a valid access token or method signing if "
              "supported");
}

std::optional<std::string> basic_user(const http::Headers& headers) {
  constexpr std::string_view kScheme = "basic ";
  const auto header = headers.get("Authorization");
  if (!header || header->size() <= kScheme.size() ||
      !equal_ignoring_case(header->substr(0, kScheme.size()), kScheme)) {
    return {};
  }
  const auto credentials = from_base64(trim(header->substr(kScheme.size())));
  if (!credentials) return {};
  // The password means nothing, but the separator must be there.
  const size_t colon = credentials->find(':');
  if (colon == std::string::npos) return {};
  return credentials->substr(0, colon);
}

std::string file_signature(const FileAccess& access, std::string_view token) {
  std::string text =
      cat(access.path, ":", access.operation == FileOperation::kRead ? "read" : "write", ":",
          access.username, ":", token);
  if (access.expiration) text += cat(":", *access.expiration);
  std::string encoded = to_base64(sha256(text));
  while (encoded.ends_with('=')) encoded.pop_back();
  return "v1_" + encoded;
}

Result<void> check_file_access(const http::Headers& headers, const FileAccess& access,
                               const std::optional<std::string>& token, int64_t unix_now) {
  if (!token) return {};
  if (headers.has("X-Access-Token")) return check_token(headers, token);
  if (!access.signature) {
    return fail(Code::kUnauthenticated, "missing signature query parameter");
  }
  if (!equal_constant_time(*access.signature, file_signature(access, *token))) {
    return fail(Code::kUnauthenticated, "invalid signature");
  }
  if (access.expiration && *access.expiration < unix_now) {
    return fail(Code::kUnauthenticated, "signature is already expired");
  }
  return {};
}

}  // namespace alcove::agent
