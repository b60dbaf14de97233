// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <string>

namespace alcove::api {

// What the API says about this installation.
struct Settings {
  // Base domain of sandbox host names ("<port>-<id>.<domain>"); empty = not said, and clients use
  // their own.
  std::string domain;
  // How old a sandbox may become.
  std::chrono::seconds max_timeout = std::chrono::hours(24);
  // A constant from the protocol's past that clients insist on.
  std::string client_id = "6532622b";
  // Version of the in-sandbox protocol: what clients derive its abilities from.
  std::string envd_version = "0.6.13";
};

}  // namespace alcove::api
