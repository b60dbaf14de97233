// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/sandboxes_read.h"

#include <algorithm>
#include <string>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include "api/json_reply.h"
#include "api/list_query.h"
#include "api/sandbox_view.h"

namespace alcove::api {
namespace {

using Sandboxes = std::vector<node::LiveSandboxPtr>;

// Newest first; at the same instant by id. The other order is the exact reverse.
bool goes_before(WallTime time, const std::string& id, WallTime other_time,
                 const std::string& other_id, Order order) {
  const bool newest_first = time != other_time ? time > other_time : id < other_id;
  if (order == Order::kNewestFirst) return newest_first;
  return !newest_first && !(time == other_time && id == other_id);
}

bool is_before(const node::LiveSandbox& a, const node::LiveSandbox& b, Order order) {
  return goes_before(a.record().started_at, a.record().id.str(), b.record().started_at,
                     b.record().id.str(), order);
}

template <typename Predicate>
Sandboxes own_sandboxes(const Services& services, const Call& call, Order order, Predicate wanted) {
  Sandboxes sandboxes = services.node.list();
  std::erase_if(sandboxes, [&](const node::LiveSandboxPtr& sandbox) {
    return !sandbox->running() || sandbox->record().team != call.principal.team ||
           !wanted(sandbox->record());
  });
  std::sort(sandboxes.begin(), sandboxes.end(),
            [order](const auto& a, const auto& b) { return is_before(*a, *b, order); });
  return sandboxes;
}

http::Response list_response(Sandboxes::const_iterator first, Sandboxes::const_iterator last,
                             const Settings& settings) {
  boost::json::array list;
  list.reserve(static_cast<size_t>(last - first));
  for (auto at = first; at != last; ++at) list.emplace_back(show_listed(**at, settings));
  return json_response(200, list);
}

// A template that is gone may still have sandboxes: then its id alone finds them.
TemplateId resolve_template(const Services& services, const Call& call,
                            const TemplateReference& reference) {
  const CatalogEntryPtr entry = services.templates.find(reference, call.viewer());
  return entry != nullptr ? entry->record.id : TemplateId(reference.full_name());
}

Sandboxes find_matches(const Services& services, const Call& call, const ListQuery& query) {
  // Nothing can be paused so far.
  if (!query.running) return {};
  std::optional<TemplateId> template_id;
  if (query.template_reference) {
    template_id = resolve_template(services, call, *query.template_reference);
  }
  return own_sandboxes(services, call, query.order, [&](const store::Sandbox& record) {
    return matches(query.metadata, record.metadata) &&
           (!template_id || record.template_id == *template_id) &&
           (!query.started_after || record.started_at >= *query.started_after);
  });
}

}  // namespace

Task<http::Response> get_sandbox(Services& services, const Call& call) {
  const auto sandbox = find_own_sandbox(services, call);
  if (!sandbox) co_return error_response(sandbox.error());
  co_return json_response(200, show_detail(**sandbox, services.settings));
}

Task<http::Response> list_sandboxes_v1(Services& services, const Call& call) {
  const auto filter = parse_metadata_query(call.head.query());
  if (!filter) co_return error_response(filter.error());
  const Sandboxes found = own_sandboxes(
      services, call, Order::kNewestFirst,
      [&](const store::Sandbox& record) { return matches(*filter, record.metadata); });
  co_return list_response(found.begin(), found.end(), services.settings);
}

Task<http::Response> list_sandboxes_v2(Services& services, const Call& call) {
  const auto query = parse_list_query(call.head.query());
  if (!query) co_return error_response(query.error());
  const Sandboxes found = find_matches(services, call, *query);

  auto first = found.begin();
  if (const auto& after = query->after) {
    first = std::partition_point(found.begin(), found.end(), [&](const auto& sandbox) {
      return !goes_before(after->time, after->id, sandbox->record().started_at,
                          sandbox->record().id.str(), query->order);
    });
  }
  const auto page = std::min<size_t>(query->limit, static_cast<size_t>(found.end() - first));
  const auto last = first + static_cast<ptrdiff_t>(page);

  http::Response response = list_response(first, last, services.settings);
  if (query->running) response.headers.set("X-Total-Running", std::to_string(found.size()));
  if (last != found.end()) {
    const store::Sandbox& shown_last = (*(last - 1))->record();
    response.headers.set("X-Next-Token", encode_page_token({.time = shown_last.started_at,
                                                            .id = shown_last.id.str(),
                                                            .order = query->order}));
  }
  co_return response;
}

}  // namespace alcove::api
