// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/sandboxes_lifecycle.h"

#include <algorithm>
#include <chrono>

#include <boost/json/value.hpp>

#include "api/create_body.h"
#include "api/json_reply.h"
#include "api/json_view.h"
#include "api/sandbox_view.h"

namespace alcove::api {
namespace {

using std::chrono::seconds;

constexpr seconds kDefaultConnectTimeoutV2{300};
constexpr seconds kMinRefresh{15};
constexpr int32_t kMaxRefreshSeconds = 3600;

// A sandbox never becomes older than the maximum; asking for more is no error.
WallTime capped_end(const Services& services, const node::LiveSandbox& sandbox, seconds timeout) {
  return std::min<WallTime>(services.clock.now() + timeout,
                            sandbox.record().started_at + services.settings.max_timeout);
}

http::Response end_not_moved(const node::LiveSandbox& sandbox, const Error& error) {
  const std::string& id = sandbox.record().id.str();
  if (error.code() == Code::kNotFound) return error_response(sandbox_not_found(id));
  return error_response(internal_error("setting the timeout of sandbox " + id, error));
}

ApiResult<seconds> read_connect_timeout(const Call& call, Generation generation, seconds maximum) {
  // The old route demands a body, the new one is called without.
  ALCOVE_API_TRY_ASSIGN(const auto body, generation == Generation::kV1
                                             ? parse_object(call.body)
                                             : parse_optional_object(call.body));
  const ObjectView fields(body);
  ALCOVE_API_TRY_ASSIGN(const auto timeout, fields.integer("timeout", /*minimum=*/0));
  // How to wake a paused sandbox: without meaning for one that runs.
  ALCOVE_API_TRY(fields.boolean("memory"));
  if (!timeout && generation == Generation::kV1) return refuse_invalid("'timeout' is required");
  const seconds wanted = timeout ? seconds(*timeout) : kDefaultConnectTimeoutV2;
  ALCOVE_API_TRY(check_max_timeout(wanted, maximum));
  return wanted;
}

Task<http::Response> connect_sandbox(Services& services, const Call& call, Generation generation) {
  const auto timeout = read_connect_timeout(call, generation, services.settings.max_timeout);
  if (!timeout) co_return error_response(timeout.error());
  const auto found = find_own_sandbox(services, call);
  if (!found) co_return error_response(found.error());
  const node::LiveSandbox& sandbox = **found;
  const auto extended = co_await services.node.extend_end(sandbox.record().id,
                                                          capped_end(services, sandbox, *timeout));
  if (!extended) co_return end_not_moved(sandbox, extended.error());
  co_return json_response(200, show_handle(sandbox.record(), services.settings));
}

}  // namespace

Task<http::Response> kill_sandbox(Services& services, const Call& call) {
  const auto id = parse_sandbox_id(call.parameters.at(0));
  if (!id) co_return error_response({400, id.error().message()});
  const TeamId& team = call.principal.team;
  const auto found = find_own_sandbox(services, call);
  if (!found && !services.kills.contains(*id, team)) co_return error_response(found.error());
  const KillsUnderWay::Mark mark(services.kills, *id, team);
  const auto killed = co_await services.node.kill(*id);
  if (!killed) {
    co_return error_response(internal_error("killing sandbox " + id->str(), killed.error()));
  }
  if (!*killed) co_return error_response(sandbox_not_found(id->str()));
  co_return no_content();
}

Task<http::Response> set_sandbox_timeout(Services& services, const Call& call) {
  const auto body = parse_object(call.body);
  if (!body) co_return error_response(body.error());
  const auto timeout = ObjectView(*body).integer("timeout", /*minimum=*/0);
  if (!timeout) co_return error_response(timeout.error());
  if (!*timeout) co_return error_response(refuse_invalid("'timeout' is required").value());
  const auto found = find_own_sandbox(services, call);
  if (!found) co_return error_response(found.error());
  const node::LiveSandbox& sandbox = **found;
  if (services.clock.now() > sandbox.record().started_at + services.settings.max_timeout) {
    co_return error_response({400, "Max instance length exceeded"});
  }
  const auto set = co_await services.node.set_end(
      sandbox.record().id, capped_end(services, sandbox, seconds(**timeout)));
  if (!set) co_return end_not_moved(sandbox, set.error());
  co_return no_content();
}

Task<http::Response> refresh_sandbox(Services& services, const Call& call) {
  const auto body = parse_optional_object(call.body);
  if (!body) co_return error_response(body.error());
  const auto duration = ObjectView(*body).integer("duration", /*minimum=*/0);
  if (!duration) co_return error_response(duration.error());
  const int32_t wanted = duration->value_or(0);
  if (wanted > kMaxRefreshSeconds) {
    co_return error_response(refuse_invalid("'duration' must be at most 3600").value());
  }
  const auto found = find_own_sandbox(services, call);
  if (!found) co_return error_response(found.error());
  const node::LiveSandbox& sandbox = **found;
  const auto extended = co_await services.node.extend_end(
      sandbox.record().id,
      capped_end(services, sandbox, std::max<seconds>(kMinRefresh, seconds(wanted))));
  if (!extended) co_return end_not_moved(sandbox, extended.error());
  co_return no_content();
}

Task<http::Response> connect_sandbox_v1(Services& services, const Call& call) {
  return connect_sandbox(services, call, Generation::kV1);
}

Task<http::Response> connect_sandbox_v2(Services& services, const Call& call) {
  return connect_sandbox(services, call, Generation::kV2);
}

}  // namespace alcove::api
