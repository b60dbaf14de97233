// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/metadata_filter.h"

#include <algorithm>
#include <optional>

#include "base/strings.h"
#include "http/url.h"

namespace alcove::api {

ApiResult<MetadataFilter> parse_metadata_filter(std::string_view value) {
  MetadataFilter filter;
  if (value.empty()) return filter;
  const std::optional<std::string> form = http::form_decode(value);
  if (!form) return refuse(400, "metadata filter is not properly encoded");
  for (const std::string_view pair : split(*form, '&')) {
    const auto parts = split(pair, '=');
    if (parts.size() != 2) {
      return refuse(400, cat("metadata filter '", pair, "' is not of the form key=value"));
    }
    auto key = http::form_decode(parts[0]);
    auto wanted = http::form_decode(parts[1]);
    if (!key || !wanted) return refuse(400, "metadata filter is not properly encoded");
    filter.insert_or_assign(*std::move(key), *std::move(wanted));
  }
  return filter;
}

bool matches(const MetadataFilter& filter, const std::map<std::string, std::string>& metadata) {
  return std::all_of(filter.begin(), filter.end(), [&](const auto& wanted) {
    const auto found = metadata.find(wanted.first);
    return found != metadata.end() && found->second == wanted.second;
  });
}

}  // namespace alcove::api
