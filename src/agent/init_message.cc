// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/init_message.h"

#include <utility>

#include <boost/json/array.hpp>

#include "agent/json_map.h"
#include "base/strings.h"
#include "base/time_format.h"
#include "connect/json_codec.h"
#include "connect/json_writer.h"

namespace alcove::agent {
namespace {

namespace json = boost::json;

// Absent and null are the same.
Result<std::optional<std::string>> take_text(const json::object& object, std::string_view name) {
  if (connect::find_field(object, name) == nullptr) return std::optional<std::string>();
  ALCOVE_TRY_ASSIGN(std::string text, connect::read_string(object, name));
  return std::optional<std::string>(std::move(text));
}

Result<std::optional<std::map<std::string, std::string>>> take_map(const json::object& object,
                                                                   std::string_view name) {
  std::optional<std::map<std::string, std::string>> map;
  if (connect::find_field(object, name) == nullptr) return map;
  ALCOVE_TRY_ASSIGN(const connect::StringMap entries, connect::read_string_map(object, name));
  map.emplace(entries.begin(), entries.end());
  return map;
}

Result<void> refuse_unserved(const json::object& object) {
  ALCOVE_TRY_ASSIGN(const json::array* mounts, connect::read_array(object, "volumeMounts"));
  if (mounts != nullptr && !mounts->empty()) {
    return fail(Code::kInvalidArgument, "volumeMounts are not available");
  }
  ALCOVE_TRY_ASSIGN(const std::string bundle, connect::read_string(object, "caBundle"));
  if (!bundle.empty()) return fail(Code::kInvalidArgument, "caBundle is not available");
  return {};
}

}  // namespace

std::string encode_init(const InitRequest& request) {
  std::string out = "{";
  const auto put_name = [&](std::string_view name) {
    if (out.size() > 1) out += ',';
    connect::append_json_string(out, name);
    out += ':';
  };
  const auto put = [&](std::string_view name, const std::optional<std::string>& value) {
    if (!value) return;
    put_name(name);
    connect::append_json_string(out, *value);
  };
  if (request.timestamp) put("timestamp", format_rfc3339(*request.timestamp));
  if (request.env_vars) {
    put_name("envVars");
    append_json_map(out, *request.env_vars);
  }
  put("accessToken", request.access_token);
  put("defaultUser", request.default_user);
  put("defaultWorkdir", request.default_workdir);
  put("sandboxId", request.sandbox_id);
  put("templateId", request.template_id);
  put("teamId", request.team_id);
  put("controlToken", request.control_token);
  out += '}';
  return out;
}

Result<InitRequest> decode_init(std::string_view body) {
  InitRequest request;
  if (trim(body).empty()) return request;
  ALCOVE_TRY_ASSIGN(const json::object object, connect::parse_message(body));
  ALCOVE_TRY(refuse_unserved(object));
  ALCOVE_TRY_ASSIGN(const auto timestamp, take_text(object, "timestamp"));
  if (timestamp) {
    request.timestamp = parse_rfc3339(*timestamp);
    if (!request.timestamp) {
      return fail(Code::kInvalidArgument, "timestamp must be in RFC 3339 format");
    }
  }
  ALCOVE_TRY_ASSIGN(request.env_vars, take_map(object, "envVars"));
  ALCOVE_TRY_ASSIGN(request.access_token, take_text(object, "accessToken"));
  if (request.access_token &&
      (request.access_token->empty() || request.access_token->find('\\') != std::string::npos)) {
    return fail(Code::kInvalidArgument, "accessToken must not be empty or contain backslashes");
  }
  ALCOVE_TRY_ASSIGN(request.default_user, take_text(object, "defaultUser"));
  ALCOVE_TRY_ASSIGN(request.default_workdir, take_text(object, "defaultWorkdir"));
  ALCOVE_TRY_ASSIGN(request.sandbox_id, take_text(object, "sandboxId"));
  ALCOVE_TRY_ASSIGN(request.template_id, take_text(object, "templateId"));
  ALCOVE_TRY_ASSIGN(request.team_id, take_text(object, "teamId"));
  ALCOVE_TRY_ASSIGN(request.control_token, take_text(object, "controlToken"));
  return request;
}

}  // namespace alcove::agent
