// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace alcove::agent {

// A value with parameters, as in Content-Type and Content-Disposition: the value and the parameter
// names are in lower case. "name*=utf-8''..." is decoded into "name".
struct MediaType {
  std::string value;
  std::map<std::string, std::string> parameters;
};

// Nothing for broken syntax.
std::optional<MediaType> parse_media_type(std::string_view text);

// `inline; filename=...` for a download: plain, quoted, or percent-encoded as the name demands.
std::string inline_disposition(std::string_view file_name);

}  // namespace alcove::agent
