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
  const auto found = known_.find(signature);
  if (found == known_.end()) return nullptr;
  auto sandbox = node_.find(found->second);
  if (!sandbox) known_.erase(found);
  return sandbox;
}

bool FileUrlFinder::may_search(const std::string& client, TimePoint now) {
  const std::lock_guard lock(mutex_);
  // Starting over is generous to a few, and keeps the memory bounded.
  if (clients_.size() >= limits_.remembered) clients_.clear();
  const auto [at, fresh] = clients_.try_emplace(client, Budget{limits_.burst, now});
  Budget& budget = at->second;
  const double passed = std::chrono::duration<double>(now - budget.at).count();
  budget.searches = std::min(limits_.burst, budget.searches + passed * limits_.per_second);
  budget.at = now;
  if (budget.searches < 1) return false;
  budget.searches -= 1;
  return true;
}

void FileUrlFinder::remember(const std::string& signature, const SandboxId& id,
                             const std::string& client) {
  const std::lock_guard lock(mutex_);
  if (known_.size() >= limits_.remembered) known_.clear();
  known_.emplace(signature, id);
  // A search with a result is free.
  if (const auto found = clients_.find(client); found != clients_.end()) {
    found->second.searches += 1;
  }
}

}  // namespace alcove::gateway
