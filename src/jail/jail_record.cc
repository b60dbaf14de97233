// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "jail/jail_record.h"

#include <boost/json.hpp>

namespace alcove::jail {

std::string to_json(const JailRecord& record) {
  return boost::json::serialize(boost::json::value{{"pid", record.pid},
                                                   {"start_time", record.start_time},
                                                   {"id_block", record.range.block},
                                                   {"id_range", record.range.index},
                                                   {"pool_key", record.pool_key},
                                                   {"cgroup_prefix", record.cgroup_prefix},
                                                   {"egress", to_text(record.egress)}});
}

Result<JailRecord> parse_jail_record(const std::string& json) {
  boost::system::error_code error;
  const boost::json::value value = boost::json::parse(json, error);
  const auto bad = [] { return fail(Code::kInvalidArgument, "malformed jail record"); };
  if (error || !value.is_object()) return bad();
  const boost::json::object& object = value.get_object();
  auto number = [&](const char* name, auto& out) {
    const boost::json::value* field = object.if_contains(name);
    if (field == nullptr || !field->is_number()) return false;
    boost::system::error_code conversion;
    out = field->to_number<std::remove_reference_t<decltype(out)>>(conversion);
    return !conversion;
  };
  auto text = [&](const char* name, std::string& out) {
    const boost::json::value* field = object.if_contains(name);
    if (field == nullptr || !field->is_string()) return false;
    out = std::string(field->get_string());
    return true;
  };
  JailRecord record;
  if (!number("pid", record.pid) || !number("start_time", record.start_time) ||
      !number("id_block", record.range.block) || !number("id_range", record.range.index) ||
      !text("pool_key", record.pool_key) || !text("cgroup_prefix", record.cgroup_prefix) ||
      record.pid <= 1 || !record.range.valid()) {
    return bad();
  }
  // A record without it is of a sandbox whose network leads nowhere.
  std::string egress = "none";
  (void)text("egress", egress);
  const auto policy = network::parse_egress_policy(egress);
  if (!policy) return bad();
  record.egress = *policy;
  return record;
}

}  // namespace alcove::jail
