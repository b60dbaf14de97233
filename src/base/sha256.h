// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace alcove {

// SHA-256 of `data` as 32 raw bytes.
std::string sha256(std::string_view data);
// The same in lower-case hex.
std::string sha256_hex(std::string_view data);

// SHA-256 of something that arrives in pieces.
class Sha256 {
 public:
  Sha256();
  void update(std::string_view data);
  // 32 raw bytes.
  std::string finish();
  std::string finish_hex();

 private:
  // Room for OpenSSL's SHA256_CTX, so that its header stays out of ours.
  alignas(8) std::array<unsigned char, 128> state_;
};

// HMAC-SHA-256 (RFC 2104) of the pieces, one behind the other, as 32 raw bytes.
std::string hmac_sha256(std::string_view key, std::span<const std::string_view> pieces);

// Compares two secrets in a time that does not depend on where they differ.
bool equal_constant_time(std::string_view a, std::string_view b);

}  // namespace alcove
