// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"

struct ssl_ctx_st;

namespace alcove::net {

// A certificate chain with its key, as a server shows it to TLS clients: TLS 1.2 and newer, ALPN
// `http/1.1`, no renegotiation. Immutable, so all loops share one.
class TlsIdentity {
 public:
  // Both in PEM; the leaf comes first. Fails if the key is not the leaf's.
  static Result<std::shared_ptr<const TlsIdentity>> make(const std::string& chain,
                                                         const std::string& key);

  // Whether the leaf holds for this host name; wildcards count.
  bool covers(const std::string& host) const;
  // When the leaf ends.
  std::chrono::system_clock::time_point not_after() const;
  ssl_ctx_st* context() const { return context_.get(); }

 private:
  struct FreeContext {
    void operator()(ssl_ctx_st* context) const;
  };
  std::unique_ptr<ssl_ctx_st, FreeContext> context_;
};

using TlsIdentityPtr = std::shared_ptr<const TlsIdentity>;

// The identity that new connections get. Replaced from any thread; connections keep theirs.
class TlsIdentitySlot {
 public:
  TlsIdentityPtr current() const {
    const std::scoped_lock lock(mutex_);
    return identity_;
  }
  void replace(TlsIdentityPtr identity) {
    const std::scoped_lock lock(mutex_);
    identity_ = std::move(identity);
  }

 private:
  mutable std::mutex mutex_;
  TlsIdentityPtr identity_;
};

}  // namespace alcove::net
