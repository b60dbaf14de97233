// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>

#include "net/tls_authority.h"
#include "net/tls_identity.h"

namespace alcove::net::testing {

// A certificate for alcove.localhost that nobody vouches for.
inline PemPair make_pair() {
  constexpr const char* kDomain = "alcove.localhost";
  constexpr std::chrono::hours kLife{24};
  return *issue_certificate(*make_authority(kDomain, kLife), kDomain, kLife);
}

inline TlsIdentityPtr make_identity() {
  const PemPair leaf = make_pair();
  return *TlsIdentity::make(leaf.certificate, leaf.key);
}

}  // namespace alcove::net::testing
