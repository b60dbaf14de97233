// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "api/errors.h"
#include "api/metadata_filter.h"
#include "api/pagination.h"
#include "api/template_reference.h"
#include "base/clock.h"

namespace alcove::api {

// The query of GET /v2/sandboxes.
struct ListQuery {
  MetadataFilter metadata;
  bool running = true;
  bool paused = true;
  Order order = Order::kNewestFirst;
  // Inclusive.
  std::optional<WallTime> started_after;
  std::optional<TemplateReference> template_reference;
  size_t limit = 100;
  std::optional<PageToken> after;
};

// `raw` is what follows the '?' in the request line.
ApiResult<ListQuery> parse_list_query(std::string_view raw);

// GET /sandboxes knows only the metadata filter.
ApiResult<MetadataFilter> parse_metadata_query(std::string_view raw);

}  // namespace alcove::api
