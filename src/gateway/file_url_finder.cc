// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/file_url_finder.h"

#include <algorithm>
#include <optional>

#include "agent/access.h"
#include "agent/files_query.h"
#include "base/sha256.h"
#include "gateway/target.h"

namespace alcove::gateway {
namespace {

std::optional<agent::FileOperation> operation_of(const http::RequestHead& request) {
  std::string_view method = request.method;
  // A browser asks before it uses the URL.
  if (method == "OPTIONS") {
    method = request.headers.get("Access-Control-Request-Method").value_or("");
  }
  if (method == "GET") return agent::FileOperation::kRead;
  if (method == "POST") return agent::FileOperation::kWrite;
  return {};
}

}  // namespace

tl::expected<SandboxId, FileUrlFinder::Miss> FileUrlFinder::find(const http::RequestHead& request,
                                                                 const std::string& client,
                                                                 TimePoint now) {
  const auto operation = operation_of(request);
  const auto query = agent::parse_files_query(split_target(request.target).query());
  if (!operation || !query || !query->signature) return tl::unexpected(Miss::kUnknown);
  if (const auto sandbox = recall(*query->signature)) return sandbox->record().id;
  if (!may_search(client, now)) return tl::unexpected(Miss::kTooOften);
  const agent::FileAccess access = query->access(*operation);
  for (const node::LiveSandboxPtr& sandbox : node_.list()) {
    const store::Sandbox& record = sandbox->record();
    if (record.envd_token.empty()) continue;
    if (!equal_constant_time(agent::file_signature(access, record.envd_token), *query->signature)) {
      continue;
    }
    remember(*query->signature, record.id, client);
    return record.id;
  }
  return tl::unexpected(Miss::kUnknown);
}

node::LiveSandboxPtr FileUrlFinder::recall(const std::string& signature) {
  const std::lock_guard lock(mutex_);
  const SandboxId* id = known_.find(signature);
  if (id == nullptr) return nullptr;
  auto sandbox = node_.find(*id);
  if (!sandbox) known_.erase(signature);
  return sandbox;
}

void FileUrlFinder::Budget::refill(const Rate& rate, TimePoint now) {
  const double passed = std::chrono::duration<double>(now - at).count();
  searches = std::min(rate.burst, searches + passed * rate.per_second);
  at = now;
}

bool FileUrlFinder::may_search(const std::string& client, TimePoint now) {
  const std::lock_guard lock(mutex_);
  Budget* own = clients_.find(client);
  if (own == nullptr) own = clients_.put(client, {.searches = limits_.client.burst, .at = now});
  own->refill(limits_.client, now);
  all_.refill(limits_.all, now);
  if (own->searches < 1 || all_.searches < 1) return false;
  own->searches -= 1;
  all_.searches -= 1;
  return true;
}

void FileUrlFinder::remember(const std::string& signature, const SandboxId& id,
                             const std::string& client) {
  const std::lock_guard lock(mutex_);
  known_.put(signature, id);
  // A search with a result is free.
  if (Budget* own = clients_.find(client)) own->searches += 1;
  all_.searches += 1;
}

}  // namespace alcove::gateway
