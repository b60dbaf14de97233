// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/files_query.h"

#include "base/strings.h"
#include "http/url.h"

namespace alcove::agent {

Result<FilesQuery> parse_files_query(std::string_view query) {
  const auto parameters = http::parse_query(query);
  if (!parameters) return fail(Code::kInvalidArgument, "the query is not valid");
  FilesQuery result;
  const auto take = [&](std::string_view name) -> std::optional<std::string> {
    const auto value = http::find_parameter(*parameters, name);
    if (!value) return {};
    return std::string(*value);
  };
  result.path = take("path");
  result.username = take("username");
  result.signature = take("signature");
  if (const auto text = take("signature_expiration")) {
    result.expiration = parse_number<int64_t>(*text);
    if (!result.expiration) {
      return fail(Code::kInvalidArgument, "signature_expiration must be an integer");
    }
  }
  return result;
}

}  // namespace alcove::agent
