// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "base/sha256.h"

// The low-level functions are marked deprecated in OpenSSL 3 in favour of EVP, which would pull the
// whole provider machinery (4 MB) into the static agent; so would the one-shot SHA256().
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include "base/hex.h"

namespace alcove {

std::string sha256(std::string_view data) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, data.data(), data.size());
  SHA256_Final(reinterpret_cast<unsigned char*>(digest.data()), &context);
  return digest;
}

std::string sha256_hex(std::string_view data) { return to_hex(sha256(data)); }

static_assert(sizeof(SHA256_CTX) <= 128);

Sha256::Sha256() { SHA256_Init(reinterpret_cast<SHA256_CTX*>(state_.data())); }

void Sha256::update(std::string_view data) {
  SHA256_Update(reinterpret_cast<SHA256_CTX*>(state_.data()), data.data(), data.size());
}

std::string Sha256::finish() {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256_Final(reinterpret_cast<unsigned char*>(digest.data()),
               reinterpret_cast<SHA256_CTX*>(state_.data()));
  return digest;
}

std::string Sha256::finish_hex() { return to_hex(finish()); }

// By hand, because OpenSSL's brings much of the library into a static program.
std::string hmac_sha256(std::string_view key, std::span<const std::string_view> pieces) {
  std::string inner_pad(key.size() > SHA256_CBLOCK ? sha256(key) : std::string(key));
  inner_pad.resize(SHA256_CBLOCK, '\0');
  std::string outer_pad = inner_pad;
  for (char& byte : inner_pad) byte = static_cast<char>(byte ^ 0x36);
  for (char& byte : outer_pad) byte = static_cast<char>(byte ^ 0x5C);
  Sha256 inner;
  inner.update(inner_pad);
  for (const std::string_view piece : pieces) inner.update(piece);
  Sha256 outer;
  outer.update(outer_pad);
  outer.update(inner.finish());
  return outer.finish();
}

bool equal_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

}  // namespace alcove
