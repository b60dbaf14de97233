// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/errors.h"
#include "api/pagination.h"
#include "base/clock.h"
#include "base/ids.h"
#include "node/log_entry.h"

namespace alcove::api {

// Queries of the routes that show what a sandbox uses and what happened in it. `raw` is what
// follows the '?' in the request line.

// GET /sandboxes/{id}/metrics: whole seconds, both included.
struct MetricsQuery {
  WallTime from = WallTime::min();
  WallTime until = WallTime::max();
};
ApiResult<MetricsQuery> parse_metrics_query(std::string_view raw);

// GET /sandboxes/metrics: `sandbox_ids`, 1 to 100 different ones.
ApiResult<std::vector<SandboxId>> parse_bulk_metrics_query(std::string_view raw);

// Which lines of a log are wanted.
struct LogsQuery {
  // By the millisecond, both included.
  WallTime from = WallTime::min();
  WallTime until = WallTime::max();
  Order order = Order::kOldestFirst;
  size_t limit = 1000;
  node::LogLevel min_level = node::LogLevel::kDebug;
  std::string search;
};
// GET /sandboxes/{id}/logs: `start` and `limit`.
ApiResult<LogsQuery> parse_logs_query_v1(std::string_view raw);
// GET /v2/sandboxes/{id}/logs: `cursor` is where to begin in the chosen direction.
ApiResult<LogsQuery> parse_logs_query_v2(std::string_view raw);

}  // namespace alcove::api
