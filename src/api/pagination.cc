// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/pagination.h"

#include <algorithm>
#include <cstdint>

#include "base/base64.h"
#include "base/strings.h"
#include "base/time_format.h"

namespace alcove::api {
namespace {

constexpr std::string_view kSeparator = "__";
constexpr std::string_view kAscending = "__asc";
constexpr size_t kMaxLimit = 100;

// Nothing in it needs escaping in a URL.
std::string base64url(std::string_view bytes) {
  std::string out = to_base64(bytes);
  while (out.ends_with('=')) out.pop_back();
  std::replace(out.begin(), out.end(), '+', '-');
  std::replace(out.begin(), out.end(), '/', '_');
  return out;
}

}  // namespace

std::string encode_page_token(const PageToken& token) {
  return base64url(cat(format_rfc3339(token.time), kSeparator, token.id,
                       token.order == Order::kOldestFirst ? kAscending : std::string_view{}));
}

ApiResult<PageToken> parse_page_token(std::string_view text, Order order) {
  const auto invalid = [] { return refuse(400, "invalid next token"); };
  const std::optional<std::string> decoded = from_base64(text);
  if (!decoded) return invalid();
  std::string_view rest = *decoded;
  PageToken token;
  if (rest.ends_with(kAscending)) {
    token.order = Order::kOldestFirst;
    rest.remove_suffix(kAscending.size());
  }
  const size_t separator = rest.find(kSeparator);
  if (separator == std::string_view::npos) return invalid();
  const auto time = parse_rfc3339(rest.substr(0, separator));
  token.id = rest.substr(separator + kSeparator.size());
  if (!time || token.id.empty()) return invalid();
  token.time = *time;
  if (token.order != order) {
    return refuse(400, "invalid next token: it belongs to a list in the other order");
  }
  return token;
}

ApiResult<size_t> parse_limit(std::optional<std::string_view> text) {
  if (!text) return kMaxLimit;
  const auto limit = parse_number<uint32_t>(*text);
  if (!limit || *limit < 1 || *limit > kMaxLimit) {
    return refuse_invalid(cat("'limit' must be an integer from 1 to ", kMaxLimit));
  }
  return *limit;
}

}  // namespace alcove::api
