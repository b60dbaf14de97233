// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/query.h"

#include <utility>

#include "base/strings.h"

namespace alcove::api {

ApiResult<http::QueryParameters> parse_parameters(std::string_view raw) {
  auto parameters = http::parse_query(raw);
  if (!parameters) return refuse_invalid("the query is not properly encoded");
  return *std::move(parameters);
}

std::optional<std::string_view> given(const http::QueryParameters& parameters,
                                      std::string_view name) {
  const auto value = http::find_parameter(parameters, name);
  return value && !value->empty() ? value : std::nullopt;
}

ApiResult<std::optional<uint64_t>> given_number(const http::QueryParameters& parameters,
                                                std::string_view name, uint64_t maximum) {
  const auto text = given(parameters, name);
  if (!text) return std::optional<uint64_t>();
  const auto number = parse_number<uint64_t>(*text);
  if (!number || *number > maximum) {
    return refuse_invalid(cat("'", name, "' must be a whole number from 0 to ", maximum));
  }
  return number;
}

}  // namespace alcove::api
