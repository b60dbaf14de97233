// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/agent_state.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <utility>

#include "agent/file_io.h"
#include "base/sha256.h"
#include "base/strings.h"

namespace alcove::agent {

AgentState::AgentState(std::string identity_directory, std::string path_variable)
    : identity_directory_(std::move(identity_directory)),
      path_variable_(std::move(path_variable)) {}

Result<void> AgentState::authorize_init(const InitRequest& request,
                                        std::optional<std::string_view> control_token) const {
  if (control_token_) return authorize_control(control_token);
  if (!access_token_) return {};
  if (!request.access_token) {
    return fail(Code::kUnauthenticated, "access token reset is not authorized");
  }
  if (!equal_constant_time(*request.access_token, *access_token_)) {
    return fail(Code::kUnauthenticated, "access token does not match");
  }
  return {};
}

Result<void> AgentState::authorize_control(std::optional<std::string_view> control_token) const {
  if (control_token_ && control_token && equal_constant_time(*control_token, *control_token_)) {
    return {};
  }
  return fail(Code::kUnauthenticated, "control token is missing or does not match");
}

void AgentState::apply(const InitRequest& request) {
  if (!control_token_) control_token_ = request.control_token;
  if (request.timestamp) {
    if (last_timestamp_ && *request.timestamp < *last_timestamp_) return;
    last_timestamp_ = request.timestamp;
  }
  if (request.env_vars) variables_ = *request.env_vars;
  access_token_ = request.access_token;
  if (request.default_user && !request.default_user->empty()) default_user_ = *request.default_user;
  if (request.default_workdir) {
    default_workdir_ = request.default_workdir;
    if (default_workdir_->empty()) default_workdir_.reset();
  }
  const auto identity_before = identity_;
  if (request.sandbox_id) identity_["E2B_SANDBOX_ID"] = *request.sandbox_id;
  if (request.template_id) identity_["E2B_TEMPLATE_ID"] = *request.template_id;
  if (request.team_id) identity_["E2B_TEAM_ID"] = *request.team_id;
  if (identity_ != identity_before) write_identity();
}

std::map<std::string, std::string> AgentState::global_variables() const {
  // The identity cannot be changed by the variables of a create.
  auto variables = identity_;
  variables.insert(variables_.begin(), variables_.end());
  return variables;
}

std::vector<std::string> AgentState::environment(
    const User& user, const std::map<std::string, std::string>& own) const {
  std::map<std::string_view, std::string_view> merged = {
      {"PATH", path_variable_}, {"HOME", user.home}, {"USER", user.name}, {"LOGNAME", user.name}};
  for (const auto& [name, value] : variables_) merged[name] = value;
  for (const auto& [name, value] : identity_) merged[name] = value;
  for (const auto& [name, value] : own) merged[name] = value;
  std::vector<std::string> environment;
  environment.reserve(merged.size());
  for (const auto& [name, value] : merged) environment.push_back(cat(name, "=", value));
  return environment;
}

// Best effort: a root without a writable /run works as well, programs inside rarely look there.
void AgentState::write_identity() const {
  for (size_t slash = identity_directory_.find('/', 1); slash != std::string::npos;
       slash = identity_directory_.find('/', slash + 1)) {
    ::mkdir(identity_directory_.substr(0, slash).c_str(), 0755);
  }
  ::mkdir(identity_directory_.c_str(), 0755);
  for (const auto& [name, value] : identity_) {
    const std::string path = cat(identity_directory_, "/.", name);
    // Removed first: a link or fifo in its place must not be followed or waited for.
    ::unlink(path.c_str());
    const auto file = open_file(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0444);
    if (file) (void)write_all(file->get(), value);
  }
}

}  // namespace alcove::agent
