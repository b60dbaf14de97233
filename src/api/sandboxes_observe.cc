// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/sandboxes_observe.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "api/json_reply.h"
#include "api/observe_query.h"
#include "base/time_format.h"

namespace alcove::api {
namespace {

namespace json = boost::json;

// Every field is needed: the Python client fails on a missing one.
json::object show_metric(const node::Measurement& measured, const store::Sandbox& record) {
  const auto since_1970 = measured.time.time_since_epoch();
  return {{"timestamp", format_rfc3339(measured.time)},
          {"timestampUnix", std::chrono::floor<std::chrono::seconds>(since_1970).count()},
          {"cpuCount", record.vcpu_count},
          {"cpuUsedPct", std::round(measured.cpu_used_percent * 100) / 100},
          {"memUsed", measured.memory_used_bytes},
          {"memTotal", record.memory_bytes},
          {"memCache", measured.memory_cache_bytes},
          {"diskUsed", measured.disk_used_bytes},
          {"diskTotal", record.disk_bytes}};
}

json::object show_entry(const node::LogEntry& entry) {
  json::object fields;
  for (const auto& [name, value] : entry.fields) fields.emplace(name, value);
  return {{"timestamp", format_rfc3339(entry.time)},
          {"level", node::level_name(entry.level)},
          {"message", entry.message},
          {"fields", std::move(fields)}};
}

// The CLI parses every line as JSON and needs a level in it.
std::string show_line(const node::LogEntry& entry) {
  json::object line{{"level", node::level_name(entry.level)}, {"message", entry.message}};
  for (const auto& [name, value] : entry.fields) line.emplace(name, value);
  return json::serialize(line);
}

bool is_wanted(const node::LogEntry& entry, const LogsQuery& query) {
  return entry.time >= query.from && entry.time <= query.until && entry.level >= query.min_level &&
         entry.message.find(query.search) != std::string::npos;
}

node::Log select(node::Log log, const LogsQuery& query) {
  std::erase_if(log, [&](const node::LogEntry& entry) { return !is_wanted(entry, query); });
  if (query.order == Order::kNewestFirst) std::ranges::reverse(log);
  if (log.size() > query.limit) log.resize(query.limit);
  return log;
}

Task<ApiResult<node::Log>> find_log(Services& services, const Call& call,
                                    ApiResult<LogsQuery> query) {
  const auto id = parse_sandbox_id(call.parameters.at(0));
  if (!id) co_return refuse(400, id.error().message());
  if (!query) co_return refuse(query.error());
  auto log = co_await services.node.read_log(*id, call.principal.team);
  if (!log) co_return refuse(internal_error("reading the log of " + id->str(), log.error()));
  if (!*log) co_return refuse(sandbox_missing(services, call, *id));
  co_return select(**std::move(log), *query);
}

}  // namespace

Task<http::Response> get_sandbox_metrics(Services& services, const Call& call) {
  const auto id = parse_sandbox_id(call.parameters.at(0));
  if (!id) co_return error_response({400, id.error().message()});
  const auto query = parse_metrics_query(call.head.query());
  if (!query) co_return error_response(query.error());
  json::array list;
  const auto sandbox = find_own_sandbox(services, call);
  if (!sandbox && sandbox.error().status == 503) co_return error_response(sandbox.error());
  if (sandbox) {
    for (const node::Measurement& each : (*sandbox)->measurements(query->from, query->until)) {
      list.emplace_back(show_metric(each, (*sandbox)->record()));
    }
  }
  co_return json_response(200, list);
}

Task<http::Response> get_bulk_metrics(Services& services, const Call& call) {
  const auto ids = parse_bulk_metrics_query(call.head.query());
  if (!ids) co_return error_response(ids.error());
  json::object found;
  for (const SandboxId& id : *ids) {
    const node::LiveSandboxPtr sandbox = services.node.find(id);
    if (sandbox == nullptr || sandbox->record().team != call.principal.team) continue;
    if (const auto measured = sandbox->last_measurement()) {
      found.emplace(id.str(), show_metric(*measured, sandbox->record()));
    }
  }
  co_return json_response(200, json::object{{"sandboxes", std::move(found)}});
}

Task<http::Response> get_sandbox_logs_v1(Services& services, const Call& call) {
  const auto log = co_await find_log(services, call, parse_logs_query_v1(call.head.query()));
  if (!log) co_return error_response(log.error());
  json::array lines;
  json::array entries;
  for (const node::LogEntry& entry : *log) {
    lines.emplace_back(
        json::object{{"timestamp", format_rfc3339(entry.time)}, {"line", show_line(entry)}});
    entries.emplace_back(show_entry(entry));
  }
  co_return json_response(
      200, json::object{{"logs", std::move(lines)}, {"logEntries", std::move(entries)}});
}

Task<http::Response> get_sandbox_logs_v2(Services& services, const Call& call) {
  const auto log = co_await find_log(services, call, parse_logs_query_v2(call.head.query()));
  if (!log) co_return error_response(log.error());
  json::array entries;
  for (const node::LogEntry& entry : *log) entries.emplace_back(show_entry(entry));
  co_return json_response(200, json::object{{"logs", std::move(entries)}});
}

}  // namespace alcove::api
