// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <openssl/err.h>

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/strings.h"

namespace alcove::net {

// The reason of OpenSSL's last failure on this thread ("key values mismatch"); forgets it.
inline std::string openssl_reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  std::string text = reason == nullptr ? "unknown reason" : reason;
  ERR_clear_error();
  return text;
}

inline Error openssl_error(Code code, std::string_view what) {
  return Error(code, cat(what, ": ", openssl_reason()));
}

}  // namespace alcove::net
