// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace alcove::http {

// Percent-decoding of a path segment; nothing for a broken escape. '+' stays.
std::optional<std::string> percent_decode(std::string_view text);
// Decoding of a query key or value: '+' is a space.
std::optional<std::string> form_decode(std::string_view text);
// Everything but unreserved characters is escaped.
std::string percent_encode(std::string_view text);

// The parameters of a query in order, decoded; nothing if one is broken.
using QueryParameters = std::vector<std::pair<std::string, std::string>>;
std::optional<QueryParameters> parse_query(std::string_view query);
// The first parameter of that name.
std::optional<std::string_view> find_parameter(const QueryParameters& parameters,
                                               std::string_view name);

// The path's segments, each decoded on its own, so that an escaped '/' stays inside its segment.
// Empty segments (doubled slashes) are kept out. Nothing for a broken escape.
std::optional<std::vector<std::string>> path_segments(std::string_view raw_path);

}  // namespace alcove::http
