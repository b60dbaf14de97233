// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "api/errors.h"
#include "http/url.h"

namespace alcove::api {

// The parameters of what follows the '?' in the request line.
ApiResult<http::QueryParameters> parse_parameters(std::string_view raw);

// The parameter of that name; one that is there but empty counts as not given.
std::optional<std::string_view> given(const http::QueryParameters& parameters,
                                      std::string_view name);

// A whole number from 0 to `maximum`; anything else is a 400 that names the parameter.
ApiResult<std::optional<uint64_t>> given_number(const http::QueryParameters& parameters,
                                                std::string_view name, uint64_t maximum);

}  // namespace alcove::api
