// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"

namespace alcove::net {

// A certificate and its private key, both PEM.
struct PemPair {
  std::string certificate;
  std::string key;
};

// A certificate authority of our own that can vouch for `domain` and names below it, and for
// nothing else: who trusts it trusts it with no other name and with no address.
Result<PemPair> make_authority(const std::string& domain, std::chrono::hours lifetime);

// A server certificate for `domain` and every name one label below it.
Result<PemPair> issue_certificate(const PemPair& authority, const std::string& domain,
                                  std::chrono::hours lifetime);

// Whether `certificate` (PEM) was signed by the authority and both still hold at `when`.
bool is_issued_by(const std::string& certificate, const std::string& authority_certificate,
                  std::chrono::system_clock::time_point when);

}  // namespace alcove::net
