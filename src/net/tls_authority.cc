// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/tls_authority.h"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <memory>
#include <utility>

#include "net/openssl_error.h"

namespace alcove::net {
namespace {

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(BIGNUM* number) const { BN_free(number); }
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

// Clocks of clients differ from ours.
constexpr std::chrono::seconds kBackdated = std::chrono::hours(24);
constexpr int kSerialBits = 127;

Owned<BIO> reader_of(const std::string& pem) {
  return Owned<BIO>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

Owned<X509> read_certificate(const std::string& pem) {
  return Owned<X509>(PEM_read_bio_X509(reader_of(pem).get(), nullptr, nullptr, nullptr));
}

Result<PemPair> to_pem(X509* certificate, EVP_PKEY* key) {
  const Owned<BIO> certificate_out(BIO_new(BIO_s_mem()));
  const Owned<BIO> key_out(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(certificate_out.get(), certificate) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(key_out.get(), key, nullptr, nullptr, 0, nullptr, nullptr) !=
          1) {
    return fail(openssl_error(Code::kInternal, "write a certificate"));
  }
  const auto text = [](BIO* bio) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    return std::string(data, static_cast<size_t>(size));
  };
  return PemPair{.certificate = text(certificate_out.get()), .key = text(key_out.get())};
}

bool set_random_serial(X509* certificate) {
  const Owned<BIGNUM> number(BN_new());
  return BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool set_name(X509_NAME* name, const std::string& common_name) {
  const auto add = [name](const char* field, const std::string& value) {
    return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                      reinterpret_cast<const unsigned char*>(value.data()),
                                      static_cast<int>(value.size()), -1, 0) == 1;
  };
  return add("O", "alcove") && add("CN", common_name);
}

bool add_extension(X509* certificate, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Owned<X509_EXTENSION> extension(
      X509V3_EXT_conf_nid(nullptr, &context, id, const_cast<char*>(value.c_str())));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// What every certificate of ours has: version, serial number, times, key and subject.
bool fill_in(X509* certificate, EVP_PKEY* key, const std::string& common_name,
             std::chrono::hours lifetime) {
  return X509_set_version(certificate, X509_VERSION_3) == 1 && set_random_serial(certificate) &&
         X509_gmtime_adj(X509_getm_notBefore(certificate), -kBackdated.count()) != nullptr &&
         X509_gmtime_adj(X509_getm_notAfter(certificate), std::chrono::seconds(lifetime).count()) !=
             nullptr &&
         X509_set_pubkey(certificate, key) == 1 &&
         set_name(X509_get_subject_name(certificate), common_name);
}

}  // namespace

Result<PemPair> make_authority(const std::string& domain, std::chrono::hours lifetime) {
  const Owned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  const Owned<X509> certificate(X509_new());
  X509* raw = certificate.get();
  const bool made =
      key && raw != nullptr &&
      fill_in(raw, key.get(), cat("alcove local authority for ", domain), lifetime) &&
      X509_set_issuer_name(raw, X509_get_subject_name(raw)) == 1 &&
      add_extension(raw, raw, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
      add_extension(raw, raw, NID_key_usage, "critical,keyCertSign,cRLSign") &&
      add_extension(raw, raw, NID_subject_key_identifier, "hash") &&
      add_extension(raw, raw, NID_authority_key_identifier, "keyid:always") &&
      // A list of permitted names says nothing about addresses: they are excluded by themselves.
      add_extension(raw, raw, NID_name_constraints,
                    cat("critical,permitted;DNS:", domain,
                        ",excluded;IP:0.0.0.0/0.0.0.0,excluded;IP:::/::")) &&
      X509_sign(raw, key.get(), EVP_sha256()) > 0;
  if (!made) return fail(openssl_error(Code::kInternal, "make a certificate authority"));
  return to_pem(raw, key.get());
}

Result<PemPair> issue_certificate(const PemPair& authority, const std::string& domain,
                                  std::chrono::hours lifetime) {
  const Owned<X509> issuer = read_certificate(authority.certificate);
  const Owned<EVP_PKEY> issuer_key(
      PEM_read_bio_PrivateKey(reader_of(authority.key).get(), nullptr, nullptr, nullptr));
  if (!issuer || !issuer_key || X509_check_private_key(issuer.get(), issuer_key.get()) != 1) {
    return fail(openssl_error(Code::kDataLoss, "the local authority cannot be read"));
  }
  const Owned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  const Owned<X509> certificate(X509_new());
  X509* raw = certificate.get();
  const bool made =
      key && raw != nullptr && fill_in(raw, key.get(), domain, lifetime) &&
      X509_set_issuer_name(raw, X509_get_subject_name(issuer.get())) == 1 &&
      add_extension(raw, issuer.get(), NID_basic_constraints, "critical,CA:FALSE") &&
      add_extension(raw, issuer.get(), NID_key_usage, "critical,digitalSignature") &&
      add_extension(raw, issuer.get(), NID_ext_key_usage, "serverAuth") &&
      add_extension(raw, issuer.get(), NID_subject_key_identifier, "hash") &&
      add_extension(raw, issuer.get(), NID_authority_key_identifier, "keyid:always") &&
      add_extension(raw, issuer.get(), NID_subject_alt_name,
                    cat("DNS:*.", domain, ",DNS:", domain)) &&
      X509_sign(raw, issuer_key.get(), EVP_sha256()) > 0;
  if (!made) return fail(openssl_error(Code::kInternal, "issue a certificate"));
  return to_pem(raw, key.get());
}

bool is_issued_by(const std::string& certificate, const std::string& authority_certificate,
                  std::chrono::system_clock::time_point when) {
  const Owned<X509> leaf = read_certificate(certificate);
  const Owned<X509> issuer = read_certificate(authority_certificate);
  const auto holds = [when](X509* one) {
    std::time_t time = std::chrono::system_clock::to_time_t(when);
    return X509_cmp_time(X509_get0_notBefore(one), &time) < 0 &&
           X509_cmp_time(X509_get0_notAfter(one), &time) > 0;
  };
  const bool valid = leaf && issuer && X509_check_issued(issuer.get(), leaf.get()) == X509_V_OK &&
                     X509_verify(leaf.get(), X509_get0_pubkey(issuer.get())) == 1 &&
                     holds(leaf.get()) && holds(issuer.get());
  ERR_clear_error();
  return valid;
}

}  // namespace alcove::net
