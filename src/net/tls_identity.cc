// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/tls_identity.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <ctime>

#include "net/openssl_error.h"

namespace alcove::net {
namespace {

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

constexpr unsigned char kHttp11[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

// Clients that offer protocols must offer ours; those that offer none speak it anyway.
int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* chosen_size,
                    const unsigned char* offered, unsigned offered_size, void*) {
  unsigned char* found = nullptr;
  if (SSL_select_next_proto(&found, chosen_size, kHttp11, sizeof kHttp11, offered, offered_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

Owned<BIO> reader_of(const std::string& pem) {
  return Owned<BIO>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// An encrypted key is refused instead of asking for its password on the terminal.
int no_password(char*, int, int, void*) { return -1; }

Result<void> use_chain(SSL_CTX* context, const std::string& pem) {
  const Owned<BIO> reader = reader_of(pem);
  const Owned<X509> leaf(PEM_read_bio_X509(reader.get(), nullptr, no_password, nullptr));
  if (!leaf) return fail(openssl_error(Code::kInvalidArgument, "no certificate in PEM"));
  if (SSL_CTX_use_certificate(context, leaf.get()) != 1) {
    return fail(openssl_error(Code::kInvalidArgument, "the certificate cannot be used"));
  }
  while (X509* next = PEM_read_bio_X509(reader.get(), nullptr, no_password, nullptr)) {
    // Takes the certificate over.
    if (SSL_CTX_add0_chain_cert(context, next) != 1) {
      X509_free(next);
      return fail(openssl_error(Code::kInvalidArgument, "the certificate chain cannot be used"));
    }
  }
  ERR_clear_error();
  return {};
}

Result<void> use_key(SSL_CTX* context, const std::string& pem) {
  const Owned<BIO> reader = reader_of(pem);
  const Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(reader.get(), nullptr, no_password, nullptr));
  if (!key) {
    return fail(openssl_error(Code::kInvalidArgument, "no private key in PEM without a password"));
  }
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return fail(openssl_error(Code::kInvalidArgument, "the key is not the certificate's"));
  }
  return {};
}

}  // namespace

void TlsIdentity::FreeContext::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

Result<TlsIdentityPtr> TlsIdentity::make(const std::string& chain, const std::string& key) {
  auto identity = std::make_shared<TlsIdentity>();
  identity->context_.reset(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* context = identity->context();
  if (context == nullptr) return fail(openssl_error(Code::kInternal, "TLS"));
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // HTTP says itself where a message ends: an end without close_notify is an ordinary one.
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // Idle connections keep no buffers, and a write may be tried again from other memory.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context, 1);
  // Sessions are resumed by tickets, which the clients keep.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 1);
  SSL_CTX_set_alpn_select_cb(context, choose_protocol, nullptr);
  ALCOVE_TRY(use_chain(context, chain));
  ALCOVE_TRY(use_key(context, key));
  return TlsIdentityPtr(std::move(identity));
}

bool TlsIdentity::covers(const std::string& host) const {
  return X509_check_host(SSL_CTX_get0_certificate(context()), host.data(), host.size(),
                         /*flags=*/0, nullptr) == 1;
}

std::chrono::system_clock::time_point TlsIdentity::not_after() const {
  std::tm time{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(SSL_CTX_get0_certificate(context())), &time) != 1) {
    return {};
  }
  return std::chrono::system_clock::from_time_t(timegm(&time));
}

}  // namespace alcove::net
