// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/sandbox_view.h"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "base/time_format.h"

namespace alcove::api {
namespace {

namespace json = boost::json;

constexpr uint64_t kMebibyte = 1 << 20;

json::object show_identity(const store::Sandbox& record, const Settings& settings) {
  json::object out{{"sandboxID", record.id.str()},
                   {"templateID", record.template_id.str()},
                   {"clientID", settings.client_id},
                   {"envdVersion", settings.envd_version}};
  if (!record.template_alias.empty()) out["alias"] = record.template_alias;
  return out;
}

}  // namespace

json::object show_handle(const store::Sandbox& record, const Settings& settings) {
  json::object out = show_identity(record, settings);
  if (record.secure) out["envdAccessToken"] = record.envd_token;
  if (!record.traffic_token.empty()) out["trafficAccessToken"] = record.traffic_token;
  if (!settings.domain.empty()) out["domain"] = settings.domain;
  return out;
}

json::object show_listed(const node::LiveSandbox& sandbox, const Settings& settings) {
  const store::Sandbox& record = sandbox.record();
  json::object out = show_identity(record, settings);
  out["state"] = "running";
  out["startedAt"] = format_rfc3339(record.started_at);
  out["endAt"] = format_rfc3339(sandbox.end_at());
  out["cpuCount"] = record.vcpu_count;
  out["memoryMB"] = record.memory_bytes / kMebibyte;
  out["diskSizeMB"] = record.disk_bytes / kMebibyte;
  json::object metadata;
  for (const auto& [key, value] : record.metadata) metadata.emplace(key, value);
  out["metadata"] = std::move(metadata);
  out["volumeMounts"] = json::array();
  // Ours, beyond the protocol; clients ignore fields they do not know.
  out["isolation"] = sandbox.isolation_class();
  return out;
}

json::object show_detail(const node::LiveSandbox& sandbox, const Settings& settings) {
  const store::Sandbox& record = sandbox.record();
  json::object out = show_listed(sandbox, settings);
  if (record.secure) out["envdAccessToken"] = record.envd_token;
  if (!settings.domain.empty()) out["domain"] = settings.domain;
  if (record.allow_internet_access) out["allowInternetAccess"] = *record.allow_internet_access;
  out["lifecycle"] = json::object{{"autoResume", false}, {"onTimeout", "kill"}};
  if (!record.network_json.empty()) {
    boost::system::error_code error;
    json::value network = json::parse(record.network_json, error);
    if (!error && network.is_object()) out["network"] = std::move(network);
  }
  return out;
}

}  // namespace alcove::api
