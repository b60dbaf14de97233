// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/create_body.h"

#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "api/json_view.h"
#include "api/network_body.h"
#include "base/strings.h"

namespace alcove::api {
namespace {

namespace json = boost::json;
using std::chrono::seconds;

constexpr seconds kDefaultTimeoutV1{15};
constexpr seconds kDefaultTimeoutV2{300};

ApiResult<void> read_template(const ObjectView& fields, CreateBody& create) {
  ALCOVE_API_TRY_ASSIGN(const auto text, fields.string("templateID"));
  if (!text) return refuse_invalid("'templateID' is required");
  auto reference = parse_template_reference(*text);
  if (!reference) return refuse(400, reference.error().message());
  create.template_text = trim(*text);
  create.template_reference = *std::move(reference);
  return {};
}

ApiResult<void> read_timeout(const ObjectView& fields, Generation generation, seconds maximum,
                             CreateBody& create) {
  ALCOVE_API_TRY_ASSIGN(const auto timeout, fields.integer("timeout", /*minimum=*/0));
  if (!timeout) {
    create.timeout = generation == Generation::kV1 ? kDefaultTimeoutV1 : kDefaultTimeoutV2;
    return {};
  }
  if (*timeout == 0) return refuse(400, "timeout must be greater than 0 seconds");
  create.timeout = seconds(*timeout);
  return check_max_timeout(create.timeout, maximum);
}

ApiResult<void> refuse_pausing(const ObjectView& fields) {
  ALCOVE_API_TRY_ASSIGN(const auto auto_pause, fields.boolean("autoPause"));
  ALCOVE_API_TRY_ASSIGN(const auto keep_memory, fields.boolean("autoPauseMemory"));
  ALCOVE_API_TRY_ASSIGN(const auto* auto_resume, fields.object("autoResume"));
  bool resume_enabled = false;
  if (auto_resume != nullptr) {
    ALCOVE_API_TRY_ASSIGN(const auto enabled,
                          ObjectView(*auto_resume, "autoResume.").boolean("enabled"));
    if (!enabled) return refuse_invalid("'autoResume.enabled' is required");
    resume_enabled = *enabled;
  }
  if (keep_memory == false && auto_pause != true) {
    return refuse(400, "autoPauseMemory: false needs autoPause: true");
  }
  if (keep_memory == false && resume_enabled) {
    return refuse(400, "autoPauseMemory: false cannot be combined with autoResume");
  }
  if (auto_pause == true) return refuse(not_available("autoPause"));
  if (resume_enabled) return refuse(not_available("autoResume"));
  return {};
}

ApiResult<void> refuse_identity_and_volumes(const ObjectView& fields) {
  ALCOVE_API_TRY_ASSIGN(const auto* iam, fields.object("iam"));
  if (iam != nullptr) {
    ALCOVE_API_TRY_ASSIGN(const auto* tokens, ObjectView(*iam, "iam.").object("tokens"));
    if (tokens != nullptr && !tokens->empty()) return refuse(not_available("iam"));
  }
  ALCOVE_API_TRY_ASSIGN(const auto* mounts, fields.array("volumeMounts"));
  if (mounts != nullptr && !mounts->empty()) return refuse(400, "Volume mounts are not enabled.");
  return {};
}

// Both are kept for every sandbox, and go through lists, records and messages.
constexpr size_t kMaxMetadata = 64 * 1024;
constexpr size_t kMaxEnvVars = 1024 * 1024;
// The kernel takes no longer "NAME=value" (MAX_ARG_STRLEN, with the end).
constexpr size_t kMaxEnvVar = 128 * 1024 - 1;

ApiResult<void> check_size(std::string_view field, const std::map<std::string, std::string>& map,
                           size_t maximum) {
  size_t size = 0;
  for (const auto& [name, value] : map) size += name.size() + value.size();
  if (size <= maximum) return {};
  return refuse(
      400, cat(field, ": names and values must not be longer than ", maximum, " bytes in all"));
}

// Neither a process's environment nor the kernel can hold anything else.
ApiResult<void> check_env_vars(const std::map<std::string, std::string>& env_vars) {
  constexpr char kNul = '\0';
  ALCOVE_API_TRY(check_size("envVars", env_vars, kMaxEnvVars));
  for (const auto& [name, value] : env_vars) {
    if (name.empty()) return refuse(400, "envVars: a name must not be empty");
    if (name.find('=') != std::string::npos || name.find(kNul) != std::string::npos) {
      return refuse(400, cat("envVars: the name '", std::string_view(name.c_str()),
                             "' must contain neither '=' nor a NUL byte"));
    }
    if (name.size() + 1 + value.size() > kMaxEnvVar) {
      return refuse(400, cat("envVars: '", name.substr(0, 100), "' and its value are longer than ",
                             kMaxEnvVar - 1, " bytes"));
    }
    if (value.find(kNul) != std::string::npos) {
      return refuse(400, cat("envVars: the value of '", name, "' must not contain a NUL byte"));
    }
  }
  return {};
}

ApiResult<std::string> read_mcp_names(const ObjectView& fields) {
  ALCOVE_API_TRY_ASSIGN(const auto* servers, fields.object("mcp"));
  if (servers == nullptr) return std::string();
  json::array names;
  for (const auto& [name, configuration] : *servers) names.emplace_back(name);
  return json::serialize(names);
}

}  // namespace

ApiResult<void> check_max_timeout(seconds timeout, seconds maximum) {
  if (timeout <= maximum) return {};
  return refuse(400,
                cat("timeout must not be greater than ", maximum.count(), " seconds (",
                    std::chrono::duration_cast<std::chrono::hours>(maximum).count(), " hours)"));
}

ApiResult<CreateBody> parse_create_body(std::string_view body, Generation generation,
                                        seconds max_timeout) {
  ALCOVE_API_TRY_ASSIGN(const json::object object, parse_object(body));
  const ObjectView fields(object);
  CreateBody create;
  ALCOVE_API_TRY(read_template(fields, create));
  ALCOVE_API_TRY(read_timeout(fields, generation, max_timeout, create));
  ALCOVE_API_TRY_ASSIGN(create.metadata, fields.string_map("metadata"));
  ALCOVE_API_TRY(check_size("metadata", create.metadata, kMaxMetadata));
  ALCOVE_API_TRY_ASSIGN(create.env_vars, fields.string_map("envVars"));
  ALCOVE_API_TRY(check_env_vars(create.env_vars));
  ALCOVE_API_TRY_ASSIGN(create.allow_internet_access, fields.boolean("allow_internet_access"));
  ALCOVE_API_TRY_ASSIGN(create.mcp_json, read_mcp_names(fields));

  create.secure = true;
  if (generation == Generation::kV1) {
    ALCOVE_API_TRY_ASSIGN(const auto secure, fields.boolean("secure"));
    create.secure = secure.value_or(false);
  }
  ALCOVE_API_TRY_ASSIGN(const auto* network, fields.object("network"));
  if (network != nullptr) {
    ALCOVE_API_TRY_ASSIGN(NetworkBody read, parse_network(*network));
    create.public_traffic = read.allow_public_traffic;
    create.network_json = std::move(read.json);
  }
  if (!create.public_traffic && !create.secure) {
    return refuse(400, "network.allowPublicTraffic: false needs secure: true");
  }
  ALCOVE_API_TRY(refuse_pausing(fields));
  ALCOVE_API_TRY(refuse_identity_and_volumes(fields));
  return create;
}

}  // namespace alcove::api
