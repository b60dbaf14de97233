// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "node/tokens.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/assert.h"
#include "base/hex.h"
#include "base/strings.h"

namespace alcove::node {

std::string TokenMaker::derive(std::string_view purpose, const SandboxId& id) const {
  const std::string message = cat(purpose, ":", id.str());
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  const unsigned char* made =
      HMAC(EVP_sha256(), seed_.data(), static_cast<int>(seed_.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(), digest, &size);
  ALCOVE_ASSERT(made != nullptr && size == 32);
  return to_hex({reinterpret_cast<const char*>(digest), size});
}

std::string TokenMaker::agent_token(const SandboxId& id) const { return derive("agent", id); }
std::string TokenMaker::traffic_token(const SandboxId& id) const { return derive("traffic", id); }
std::string TokenMaker::control_token(const SandboxId& id) const { return derive("control", id); }

}  // namespace alcove::node
