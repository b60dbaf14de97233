// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/observe_query.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "api/query.h"
#include "base/strings.h"

namespace alcove::api {
namespace {

// The end of the year 9999: later times cannot be written.
constexpr uint64_t kMaxSeconds = 253'402'300'799;
constexpr uint64_t kMaxMilliseconds = kMaxSeconds * 1000 + 999;
constexpr uint64_t kMaxLimitV1 = INT32_MAX;
constexpr uint64_t kMaxLimitV2 = 1000;
constexpr size_t kMaxIds = 100;
constexpr size_t kMaxSearch = 256;

WallTime from_seconds(uint64_t seconds) { return WallTime(std::chrono::seconds(seconds)); }
WallTime from_milliseconds(uint64_t count) { return WallTime(std::chrono::milliseconds(count)); }

// The last moment of the unit of time that begins there.
template <typename Unit>
WallTime end_of(WallTime begin, Unit unit) {
  return begin + unit - WallTime::duration(1);
}

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

ApiResult<node::LogLevel> parse_level(std::string_view text) {
  using enum node::LogLevel;
  for (const node::LogLevel level : {kDebug, kInfo, kWarn, kError}) {
    if (node::level_name(level) == text) return level;
  }
  return refuse_invalid("'level' is debug, info, warn or error");
}

}  // namespace

ApiResult<MetricsQuery> parse_metrics_query(std::string_view raw) {
  ALCOVE_API_TRY_ASSIGN(const http::QueryParameters parameters, parse_parameters(raw));
  ALCOVE_API_TRY_ASSIGN(const auto start, given_number(parameters, "start", kMaxSeconds));
  ALCOVE_API_TRY_ASSIGN(const auto end, given_number(parameters, "end", kMaxSeconds));
  if (start && end && *start > *end) {
    return refuse(400, "the start of the time range is later than its end");
  }
  MetricsQuery query;
  if (start) query.from = from_seconds(*start);
  if (end) query.until = end_of(from_seconds(*end), std::chrono::seconds(1));
  return query;
}

ApiResult<std::vector<SandboxId>> parse_bulk_metrics_query(std::string_view raw) {
  ALCOVE_API_TRY_ASSIGN(const http::QueryParameters parameters, parse_parameters(raw));
  std::vector<SandboxId> ids;
  for (const auto& [name, value] : parameters) {
    if (name != "sandbox_ids" || value.empty()) continue;
    for (const std::string_view text : split(value, ',')) {
      auto id = parse_sandbox_id(text);
      if (!id) return refuse(400, id.error().message());
      if (ids.size() == kMaxIds) return refuse_invalid("'sandbox_ids' has more than 100 ids");
      if (std::ranges::find(ids, *id) != ids.end()) {
        return refuse_invalid(cat("'sandbox_ids' has ", id->str(), " twice"));
      }
      ids.push_back(*std::move(id));
    }
  }
  if (ids.empty()) return refuse_invalid("'sandbox_ids' is required");
  return ids;
}

ApiResult<LogsQuery> parse_logs_query_v1(std::string_view raw) {
  ALCOVE_API_TRY_ASSIGN(const http::QueryParameters parameters, parse_parameters(raw));
  LogsQuery query;
  ALCOVE_API_TRY_ASSIGN(const auto start, given_number(parameters, "start", kMaxMilliseconds));
  if (start) query.from = from_milliseconds(*start);
  ALCOVE_API_TRY_ASSIGN(const auto limit, given_number(parameters, "limit", kMaxLimitV1));
  if (limit) query.limit = *limit;
  return query;
}

ApiResult<LogsQuery> parse_logs_query_v2(std::string_view raw) {
  ALCOVE_API_TRY_ASSIGN(const http::QueryParameters parameters, parse_parameters(raw));
  LogsQuery query;
  const std::string_view direction = given(parameters, "direction").value_or("backward");
  if (direction != "forward" && direction != "backward") {
    return refuse_invalid("'direction' is forward or backward");
  }
  query.order = direction == "forward" ? Order::kOldestFirst : Order::kNewestFirst;
  ALCOVE_API_TRY_ASSIGN(const auto cursor, given_number(parameters, "cursor", kMaxMilliseconds));
  if (cursor && query.order == Order::kOldestFirst) query.from = from_milliseconds(*cursor);
  if (cursor && query.order == Order::kNewestFirst) {
    query.until = end_of(from_milliseconds(*cursor), std::chrono::milliseconds(1));
  }
  ALCOVE_API_TRY_ASSIGN(const auto limit, given_number(parameters, "limit", kMaxLimitV2));
  if (limit) query.limit = *limit;
  if (const auto level = given(parameters, "level")) {
    ALCOVE_API_TRY_ASSIGN(query.min_level, parse_level(*level));
  }
  query.search = given(parameters, "search").value_or("");
  if (count_characters(query.search) > kMaxSearch) {
    return refuse_invalid("'search' has more than 256 characters");
  }
  return query;
}

}  // namespace alcove::api
