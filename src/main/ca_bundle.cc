// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "main/ca_bundle.h"

#include <array>
#include <cstdlib>
#include <filesystem>

#include "base/strings.h"
#include "main/data_dir.h"
#include "sys/file_io.h"

namespace alcove {
namespace {

constexpr std::array kUsualPlaces = {
    "/etc/ssl/certs/ca-certificates.crt",  // Debian, Ubuntu, Arch, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",    // Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",              // openSUSE
    "/etc/ssl/cert.pem",
};

std::string find_ca_bundle(const std::string& copied, const std::string& own_bundle) {
  std::error_code error;
  if (const char* named = std::getenv("SSL_CERT_FILE"); named != nullptr && *named != '\0') {
    if (named != own_bundle) return named;
    if (std::filesystem::exists(copied, error)) return copied;
  }
  for (const char* place : kUsualPlaces) {
    if (std::filesystem::exists(place, error)) return place;
  }
  return {};
}

}  // namespace

Result<std::string> copy_ca_bundle(const std::string& target, const std::string& own_bundle,
                                   CaUse use) {
  const std::string source = find_ca_bundle(target, own_bundle);
  if (source.empty()) return std::string();
  const auto content = sys::read_file(source);
  if (!content) {
    return fail(Code::kFailedPrecondition,
                cat("this machine's CA bundle cannot be read: ", content.error().message(),
                    "; set SSL_CERT_FILE to another one",
                    use == CaUse::kBuildsOnly ? ", or serve with --no-build-ca" : ""));
  }
  // The launcher keeps a copy per file it was shown: the same content stays the same file.
  const auto known = sys::read_file(target);
  if (!known || *known != *content) ALCOVE_TRY(write_file_atomically(target, *content, 0644));
  return target;
}

}  // namespace alcove
