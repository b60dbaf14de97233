// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors

// Queries of lists, metrics and logs: no input may crash, and what is accepted is within the
// limits.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/list_query.h"
#include "api/observe_query.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view raw(reinterpret_cast<const char*>(data), size);
  const auto query = alcove::api::parse_list_query(raw);
  if (query) {
    if (query->limit < 1 || query->limit > 100 || (!query->running && !query->paused)) {
      std::abort();
    }
    if (query->after) {
      // A token that was accepted is the same after another round.
      const auto again = alcove::api::parse_page_token(
          alcove::api::encode_page_token(*query->after), query->order);
      if (!again || again->id != query->after->id) std::abort();
    }
  } else {
    if (query.error().status != 400) std::abort();
    (void)alcove::api::error_response(query.error());
  }
  (void)alcove::api::parse_metadata_query(raw);
  const auto range = alcove::api::parse_metrics_query(raw);
  if (range && range->from > range->until) std::abort();
  const auto ids = alcove::api::parse_bulk_metrics_query(raw);
  if (ids && (ids->empty() || ids->size() > 100)) std::abort();
  (void)alcove::api::parse_logs_query_v1(raw);
  const auto logs = alcove::api::parse_logs_query_v2(raw);
  if (logs && logs->limit > 1000) std::abort();
  return 0;
}
