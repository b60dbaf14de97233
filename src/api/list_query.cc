// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/list_query.h"

#include <algorithm>
#include <string>
#include <utility>

#include "api/query.h"
#include "base/strings.h"
#include "base/time_format.h"
#include "http/url.h"

namespace alcove::api {
namespace {

// `state=running,paused`, or the parameter repeated.
ApiResult<void> read_states(const http::QueryParameters& parameters, ListQuery& query) {
  bool running = false;
  bool paused = false;
  for (const auto& [name, value] : parameters) {
    if (name != "state" || value.empty()) continue;
    for (const std::string_view state : split(value, ',')) {
      if (state == "running") {
        running = true;
      } else if (state == "paused") {
        paused = true;
      } else {
        return refuse_invalid(cat("'state' knows running and paused, not '", state, "'"));
      }
    }
  }
  if (running || paused) {
    query.running = running;
    query.paused = paused;
  }
  return {};
}

ApiResult<WallTime> read_time(std::string_view text) {
  // The '+' of an offset that the client did not escape arrives as a blank.
  std::string repaired(text);
  if (const size_t blank = repaired.rfind(' '); blank != std::string::npos && blank > 10) {
    repaired[blank] = '+';
  }
  const auto time = parse_rfc3339(repaired);
  if (!time) return refuse_invalid("'startedAfter' must be an RFC 3339 time");
  return *time;
}

}  // namespace

ApiResult<ListQuery> parse_list_query(std::string_view raw) {
  ALCOVE_API_TRY_ASSIGN(const http::QueryParameters parameters, parse_parameters(raw));
  ListQuery query;
  ALCOVE_API_TRY(read_states(parameters, query));
  ALCOVE_API_TRY_ASSIGN(query.metadata,
                        parse_metadata_filter(given(parameters, "metadata").value_or("")));
  if (const auto order = given(parameters, "order")) {
    if (*order != "asc" && *order != "desc") return refuse_invalid("'order' is asc or desc");
    query.order = *order == "asc" ? Order::kOldestFirst : Order::kNewestFirst;
  }
  if (const auto time = given(parameters, "startedAfter")) {
    ALCOVE_API_TRY_ASSIGN(query.started_after, read_time(*time));
  }
  if (const auto text = given(parameters, "template")) {
    auto reference = parse_template_reference(*text);
    if (!reference) return refuse(400, reference.error().message());
    if (reference->tag) return refuse(400, "the template filter takes no tag");
    query.template_reference = *std::move(reference);
  }
  ALCOVE_API_TRY_ASSIGN(query.limit, parse_limit(http::find_parameter(parameters, "limit")));
  if (const auto token = given(parameters, "nextToken")) {
    ALCOVE_API_TRY_ASSIGN(query.after, parse_page_token(*token, query.order));
  }
  return query;
}

ApiResult<MetadataFilter> parse_metadata_query(std::string_view raw) {
  ALCOVE_API_TRY_ASSIGN(const http::QueryParameters parameters, parse_parameters(raw));
  return parse_metadata_filter(given(parameters, "metadata").value_or(""));
}

}  // namespace alcove::api
