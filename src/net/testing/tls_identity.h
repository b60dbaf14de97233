// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>

#include "net/tls_authority.h"
#include "net/tls_identity.h"

namespace alcove::net::testing {

// A certificate for alcove.localhost that nobody vouches for.
inline TlsIdentityPtr make_identity() {
  constexpr const char* kDomain = "alcove.localhost";
  constexpr std::chrono::hours kLife{24};
  const PemPair leaf = *issue_certificate(*make_authority(kDomain, kLife), kDomain, kLife);
  return *TlsIdentity::make(leaf.certificate, leaf.key);
}

}  // namespace alcove::net::testing
