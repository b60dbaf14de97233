// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>

#include "base/ids.h"

namespace alcove::node {

// Makes a sandbox's secrets from the installation's seed, so that they are stable for the life of
// an id and need no storage: a handle held across a restart keeps working.
class TokenMaker {
 public:
  explicit TokenMaker(std::string seed) : seed_(std::move(seed)) {}

  // What clients send to the agent (X-Access-Token).
  std::string agent_token(const SandboxId& id) const;
  // What clients send to other ports (E2B-Traffic-Access-Token).
  std::string traffic_token(const SandboxId& id) const;
  // What the server sends to the agent's control paths; never leaves the machine.
  std::string control_token(const SandboxId& id) const;

 private:
  std::string derive(std::string_view purpose, const SandboxId& id) const;
  std::string seed_;
};

}  // namespace alcove::node
