// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "api/errors.h"
#include "base/clock.h"

namespace alcove::api {

enum class Order { kOldestFirst, kNewestFirst };

// The last element of a page: the next one goes on after it.
struct PageToken {
  WallTime time;
  std::string id;
  Order order = Order::kNewestFirst;
};

// Opaque to clients, safe in a URL.
std::string encode_page_token(const PageToken& token);
// 400 if it is none, or one of a list in the other order.
ApiResult<PageToken> parse_page_token(std::string_view text, Order order);

// `limit` of a query: 1 to 100, 100 if absent.
ApiResult<size_t> parse_limit(std::optional<std::string_view> text);

}  // namespace alcove::api
