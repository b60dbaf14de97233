// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/collections.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "api/json_reply.h"
#include "api/pagination.h"
#include "api/query.h"
#include "base/strings.h"
#include "base/time_format.h"
#include "http/url.h"

namespace alcove::api {
namespace {

namespace json = boost::json;

json::object show_template(const CatalogEntry& entry, const Call& call, const Settings& settings) {
  const store::Template& record = entry.record;
  json::array aliases{record.name};
  for (const std::string& alias : record.aliases) aliases.emplace_back(alias);
  json::array names;
  for (const json::value& alias : aliases) {
    const std::string_view name(alias.get_string());
    names.emplace_back(record.team.empty() ? std::string(name)
                                           : cat(call.principal.team_name, "/", name));
  }
  return {{"templateID", record.id.str()},
          {"buildID", record.build.str()},
          {"cpuCount", entry.limits.vcpu_count},
          {"memoryMB", entry.limits.memory_bytes >> 20},
          {"diskSizeMB", entry.limits.disk_bytes >> 20},
          {"public", record.team.empty()},
          {"aliases", std::move(aliases)},
          {"names", std::move(names)},
          {"createdAt", format_rfc3339(record.created_at)},
          {"updatedAt", format_rfc3339(record.updated_at)},
          {"createdBy", nullptr},
          // Not counted so far.
          {"lastSpawnedAt", nullptr},
          {"spawnCount", 0},
          {"buildCount", 1},
          {"envdVersion", settings.envd_version},
          {"buildStatus", "ready"}};
}

}  // namespace

Task<http::Response> list_templates(Services& services, const Call& call) {
  const auto query = parse_parameters(call.head.query());
  if (!query) co_return error_response(query.error());
  const auto team = http::find_parameter(*query, "teamID");
  if (team && !team->empty() && *team != call.principal.team.str()) {
    co_return error_response({400, "teamID is not the team of this API key"});
  }
  json::array list;
  for (const CatalogEntryPtr& entry : services.templates.list(call.viewer())) {
    list.emplace_back(show_template(*entry, call, services.settings));
  }
  co_return json_response(200, list);
}

Task<http::Response> find_template_by_alias(Services& services, const Call& call) {
  const auto reference = parse_template_reference(call.parameters.front());
  if (!reference) co_return error_response({400, reference.error().message()});
  const CatalogEntryPtr entry = services.templates.find(*reference, call.viewer());
  if (entry == nullptr || (reference->tag && !entry->has_tag(*reference->tag))) {
    co_return error_response({404, cat("template '", call.parameters.front(), "' not found")});
  }
  co_return json_response(200, json::object{{"templateID", entry->record.id.str()},
                                            {"public", entry->record.team.empty()}});
}

Task<http::Response> list_snapshots(Services&, const Call& call) {
  const auto query = parse_parameters(call.head.query());
  if (!query) co_return error_response(query.error());
  const auto limit = parse_limit(http::find_parameter(*query, "limit"));
  if (!limit) co_return error_response(limit.error());
  co_return json_response(200, json::array());
}

Task<http::Response> list_teams(Services&, const Call& call) {
  json::object team{{"teamID", call.principal.team.str()},
                    {"name", call.principal.team_name},
                    {"apiKey", call.key},
                    {"isDefault", true}};
  co_return json_response(200, json::array{std::move(team)});
}

Task<http::Response> get_health(Services& services, const Call&) {
  if (const auto pending = services.readiness.pending()) {
    co_return error_response({503, cat("Not ready yet: ", *pending)});
  }
  co_return http::Response{.status = 200,
                           .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
                           .body = "Health check successful"};
}

}  // namespace alcove::api
