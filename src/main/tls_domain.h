// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/result.h"
#include "net/tls_identity.h"

namespace alcove {

// The name that clients know an installation by: the API is `api.<name>`, a sandbox's port
// `<port>-<id>.<name>`.
struct Domain {
  std::string name;  // lower-case
  uint16_t port = 0;

  // As clients are given it: "alcove.localhost:3000"; https's own port is left out.
  std::string authority() const;
  // Names below `localhost` are this machine's: nobody issues certificates for them but we.
  bool is_local() const { return name.ends_with(".localhost"); }
};

// "example.org", "example.org:8443". `default_port` is where the server listens.
Result<Domain> parse_domain(std::string_view text, uint16_t default_port);

// The certificate that the server shows, kept up to date while it runs.
class TlsDomain {
 public:
  struct Options {
    Domain domain;
    // PEM files of a certificate chain and its key; both empty: from a local authority.
    std::string certificate;
    std::string key;
    // Where the local authority lives.
    std::string folder;
  };

  // Fails if the files do not fit together, or if the certificate does not hold for the API's and
  // the sandboxes' names.
  static Result<std::unique_ptr<TlsDomain>> open(Options options);
  ~TlsDomain();
  TlsDomain(const TlsDomain&) = delete;
  TlsDomain& operator=(const TlsDomain&) = delete;

  const net::TlsIdentitySlot& identity() const { return slot_; }
  // The certificate that clients have to trust; empty if a public authority vouches for us.
  std::string authority_file() const;

 private:
  explicit TlsDomain(Options options) : options_(std::move(options)) {}

  Result<void> load();
  Result<void> renew_local();
  // What tells that the files are others than those which were read.
  std::string fingerprint() const;
  void watch();

  const Options options_;
  net::TlsIdentitySlot slot_;
  std::string seen_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread watcher_;
};

// Writes `target`: the certificates of `system_bundle` (may be empty) and of `authority_file`.
// SSL_CERT_FILE replaces what a program trusts, so a file with ours alone would cut it off from
// everybody else.
Result<void> write_trust_bundle(const std::string& target, const std::string& system_bundle,
                                const std::string& authority_file);

}  // namespace alcove
