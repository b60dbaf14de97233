// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/init_message.h"
#include "agent/paths.h"
#include "agent/users.h"
#include "base/clock.h"
#include "base/result.h"

namespace alcove::agent {

// How the sandbox is set up: what /init gave and what every process and request needs of it. In
// memory only. Belongs to the loop.
class AgentState {
 public:
  // `identity_directory` ("/run/e2b") gets a file for each variable of the sandbox's identity;
  // `path_variable` is the PATH that processes get.
  AgentState(std::string identity_directory, std::string path_variable);

  // kUnauthenticated if the caller may not (re)configure: with a control token fixed, only who
  // knows it may; else who knows the access token, if there is one.
  Result<void> authorize_init(const InitRequest& request,
                              std::optional<std::string_view> control_token) const;
  // kUnauthenticated unless the caller knows the control token; without one nobody may.
  Result<void> authorize_control(std::optional<std::string_view> control_token) const;
  // Applies an authorised request, unless a newer one was applied before.
  void apply(const InitRequest& request);

  const std::optional<std::string>& access_token() const { return access_token_; }
  const std::string& default_user() const { return default_user_; }
  PathBase path_base(const User& user) const { return {user.home, default_workdir_}; }

  // The variables of /init and of the identity, without those of a user.
  std::map<std::string, std::string> global_variables() const;
  // "NAME=value" of a process: PATH, HOME, USER, LOGNAME, then the global ones, then `own`.
  std::vector<std::string> environment(const User& user,
                                       const std::map<std::string, std::string>& own) const;

 private:
  void write_identity() const;

  std::string identity_directory_;
  std::string path_variable_;
  std::optional<WallTime> last_timestamp_;
  std::optional<std::string> access_token_;
  std::optional<std::string> control_token_;
  std::string default_user_ = "root";
  std::optional<std::string> default_workdir_;
  std::map<std::string, std::string> variables_;
  std::map<std::string, std::string> identity_{{"E2B_SANDBOX", "true"}};
};

}  // namespace alcove::agent
