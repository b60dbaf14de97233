// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace alcove {

// Raised when an older program could no longer read what we write.
inline constexpr int kDataFormat = 1;

// The directory that holds all state of an installation. Opening it makes what is missing, refuses
// one written by a newer version and locks it against a second server.
class DataDir {
 public:
  static Result<DataDir> open(const std::string& path);

  const std::string& path() const { return path_; }
  std::string database() const { return path_ + "/alcove.db"; }
  std::string agents() const { return path_ + "/agents"; }
  std::string ca_bundle() const { return path_ + "/ca-certificates.crt"; }
  std::string tls() const { return path_ + "/tls"; }
  // What clients on this machine trust: the machine's certificates and our own authority.
  std::string trust_bundle() const { return tls() + "/ca-bundle.pem"; }
  std::string env_file() const { return path_ + "/env"; }
  // The same server in plain HTTP, for clients that take URLs.
  std::string plain_env_file() const { return path_ + "/env-plain"; }
  std::string pid_file() const { return path_ + "/server.pid"; }

 private:
  DataDir(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string path_;
  UniqueFd lock_;
};

// Replaces a file by a new one of that content, durable and never seen half-written.
Result<void> write_file_atomically(const std::string& path, const std::string& content,
                                   unsigned mode);

}  // namespace alcove
