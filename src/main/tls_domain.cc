// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "main/tls_domain.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "main/data_dir.h"
#include "net/tls_authority.h"
#include "sys/file_io.h"

namespace alcove {
namespace {

using namespace std::chrono_literals;

constexpr uint16_t kHttpsPort = 443;
constexpr std::chrono::seconds kLookEvery{2};
constexpr std::chrono::hours kAuthorityLifetime = 24h * 365 * 10;
// Some clients refuse certificates that hold for much longer than a year.
constexpr std::chrono::hours kLeafLifetime = 24h * 390;
constexpr std::chrono::hours kRenewBefore = 24h * 30;

bool is_label(std::string_view label) {
  return !label.empty() && label.size() <= 63 && label.front() != '-' && label.back() != '-' &&
         std::all_of(label.begin(), label.end(), [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

// At least two labels: clients refuse a wildcard right below a top-level name.
bool is_domain_name(std::string_view name) {
  if (name.size() > 200 || name.find('.') == std::string_view::npos) return false;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t dot = std::min(name.find('.', begin), name.size());
    if (!is_label(name.substr(begin, dot - begin))) return false;
    begin = dot + 1;
  }
  return true;
}

bool still_holds(const std::string& leaf, const std::string& authority) {
  return net::is_issued_by(leaf, authority, std::chrono::system_clock::now() + kRenewBefore);
}

}  // namespace

std::string Domain::authority() const { return port == kHttpsPort ? name : cat(name, ":", port); }

Result<Domain> parse_domain(std::string_view text, uint16_t default_port) {
  Domain domain{.name = std::string(text.substr(0, text.find(':'))), .port = default_port};
  std::transform(domain.name.begin(), domain.name.end(), domain.name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  bool valid = is_domain_name(domain.name);
  if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
    const auto port = parse_number<uint16_t>(text.substr(colon + 1));
    valid = valid && port && *port != 0;
    domain.port = port.value_or(0);
  }
  if (!valid) {
    return fail(Code::kInvalidArgument,
                cat("--domain ", text,
                    ": expected a name of two labels or more, e.g. example.org "
                    "or sandboxes.example.org:8443"));
  }
  return domain;
}

Result<std::unique_ptr<TlsDomain>> TlsDomain::open(Options options) {
  if (options.certificate.empty() != options.key.empty()) {
    return fail(Code::kInvalidArgument, "--tls-cert and --tls-key belong together");
  }
  if (options.certificate.empty() && !options.domain.is_local()) {
    return fail(Code::kInvalidArgument,
                cat("--domain ", options.domain.name, " needs a certificate for *.",
                    options.domain.name, ": give its files by --tls-cert and --tls-key"));
  }
  std::unique_ptr<TlsDomain> made(new TlsDomain(std::move(options)));
  ALCOVE_TRY(made->load());
  made->watcher_ = std::thread([raw = made.get()] { raw->watch(); });
  return made;
}

TlsDomain::~TlsDomain() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (watcher_.joinable()) watcher_.join();
}

std::string TlsDomain::authority_file() const {
  return options_.certificate.empty() ? options_.folder + "/ca.pem" : std::string();
}

Result<void> TlsDomain::renew_local() {
  std::error_code error;
  std::filesystem::create_directories(options_.folder, error);
  if (error) return fail_errno(error.value(), cat("make ", options_.folder));
  const std::string folder = options_.folder + "/";
  const std::string& name = options_.domain.name;
  const auto read = [](const std::string& path) {
    return sys::read_file(path).value_or(std::string());
  };

  net::PemPair authority{.certificate = read(folder + "ca.pem"), .key = read(folder + "ca.key")};
  const std::string leaf = read(folder + "leaf.pem");
  const auto known = net::TlsIdentity::make(leaf, read(folder + "leaf.key"));
  if (known && (*known)->covers("api." + name) && still_holds(leaf, authority.certificate)) {
    return {};
  }
  auto issued = net::issue_certificate(authority, name, kLeafLifetime);
  // An authority that is missing, broken, too old or another domain's is replaced.
  if (!issued || !still_holds(issued->certificate, authority.certificate) ||
      read(folder + "domain") != name) {
    ALCOVE_TRY_ASSIGN(authority, net::make_authority(name, kAuthorityLifetime));
    ALCOVE_TRY_ASSIGN(issued, net::issue_certificate(authority, name, kLeafLifetime));
    ALCOVE_TRY(write_file_atomically(folder + "ca.key", authority.key, 0600));
    ALCOVE_TRY(write_file_atomically(folder + "ca.pem", authority.certificate, 0644));
    ALCOVE_TRY(write_file_atomically(folder + "domain", name, 0644));
  }
  ALCOVE_TRY(write_file_atomically(folder + "leaf.key", issued->key, 0600));
  return write_file_atomically(folder + "leaf.pem", issued->certificate, 0644);
}

Result<void> TlsDomain::load() {
  const bool local = options_.certificate.empty();
  if (local) ALCOVE_TRY(renew_local());
  seen_ = fingerprint();
  const std::string certificate = local ? options_.folder + "/leaf.pem" : options_.certificate;
  ALCOVE_TRY_ASSIGN(const std::string chain, sys::read_file(certificate));
  ALCOVE_TRY_ASSIGN(const std::string key,
                    sys::read_file(local ? options_.folder + "/leaf.key" : options_.key));
  auto identity = net::TlsIdentity::make(chain, key);
  if (!identity) return fail(std::move(identity).error().context(certificate));
  if (!(*identity)->covers("api." + options_.domain.name) ||
      !(*identity)->covers("49983-i0." + options_.domain.name)) {
    return fail(Code::kInvalidArgument, cat(certificate, " is not for *.", options_.domain.name));
  }
  slot_.replace(std::move(*identity));
  return {};
}

std::string TlsDomain::fingerprint() const {
  std::string text;
  for (const std::string& path : {options_.certificate, options_.key}) {
    struct stat status{};
    if (path.empty() || ::stat(path.c_str(), &status) != 0) continue;
    text += cat(status.st_ino, ".", status.st_mtim.tv_sec, ".", status.st_mtim.tv_nsec, ".",
                status.st_size, " ");
  }
  return text;
}

void TlsDomain::watch() {
  auto next_renewal = std::chrono::steady_clock::now() + 24h;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kLookEvery, [this] { return stopping_; })) {
    const bool local = options_.certificate.empty();
    const auto now = std::chrono::steady_clock::now();
    if (local ? now < next_renewal : fingerprint() == seen_) continue;
    next_renewal = now + 24h;
    // Two files are not replaced in one step: a pair that does not fit is tried again when one of
    // them changes, and the old one goes on being shown.
    if (const auto loaded = load(); !loaded) {
      log_warn(cat("the TLS certificate is not replaced: ", loaded.error().message()));
    } else if (!local) {
      log_info("the TLS certificate was read again");
    }
  }
}

Result<void> write_trust_bundle(const std::string& target, const std::string& system_bundle,
                                const std::string& authority_file) {
  std::string content;
  if (!system_bundle.empty()) {
    ALCOVE_TRY_ASSIGN(content, sys::read_file(system_bundle));
    if (!content.empty() && content.back() != '\n') content += '\n';
  }
  ALCOVE_TRY_ASSIGN(const std::string own, sys::read_file(authority_file));
  return write_file_atomically(target, content + own, 0644);
}

}  // namespace alcove
