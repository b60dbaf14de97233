// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "doctor/doctor.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "doctor/checks.h"

namespace alcove::doctor {

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kMissing:
      return "missing";
  }
  return "?";
}

Finding ok(std::string_view name, std::string detail) {
  return {.name = std::string(name),
          .verdict = Verdict::kOk,
          .detail = std::move(detail),
          .lost = {},
          .remedy = {},
          .fix = {}};
}

Finding warning(std::string_view name, std::string detail, std::string lost, std::string remedy) {
  return {.name = std::string(name),
          .verdict = Verdict::kWarning,
          .detail = std::move(detail),
          .lost = std::move(lost),
          .remedy = std::move(remedy),
          .fix = {}};
}

Finding missing(std::string_view name, std::string detail, std::string lost, std::string remedy) {
  Finding finding = warning(name, std::move(detail), std::move(lost), std::move(remedy));
  finding.verdict = Verdict::kMissing;
  return finding;
}

std::string existing_parent(const System& system, std::string directory) {
  while (directory.size() > 1 && !system.exists(directory)) {
    const size_t slash = directory.rfind('/');
    directory = slash == 0 || slash == std::string::npos ? "/" : directory.substr(0, slash);
  }
  return directory;
}

std::vector<Finding> examine(const System& system, const Plan& plan) {
  std::vector<Finding> findings = {
      check_kernel(system),
      check_privileges(system),
      check_cgroups(system),
      check_birth_in_cgroup(system),
      check_namespaces(system),
      check_overlay(system),
      check_idmapped_mounts(system, plan),
      check_seccomp(system),
      check_pidfd(system),
      check_nftables(system),
      check_queue(system),
      check_resolvers(system),
      check_helpers(system),
      check_disk_limits(system),
      check_debian_tools(system),
      check_python_tools(system),
      check_data_dir(system, plan),
      check_disk_space(system, plan),
      check_memory(system),
      check_descriptors(system),
      check_ports(system, plan),
  };
  for (Finding& finding : check_sysctls(system)) findings.push_back(std::move(finding));
  return findings;
}

std::vector<Finding> examine_and_fix(System& system, const Plan& plan) {
  std::vector<Finding> findings = examine(system, plan);
  for (Finding& finding : findings) {
    if (!finding.fix) continue;
    const auto written = system.write(finding.fix->path, finding.fix->value);
    if (!written) {
      finding.remedy += cat(" (tried now: ", written.error().message(), ")");
      continue;
    }
    finding.verdict = Verdict::kOk;
    finding.detail =
        cat("raised from ", finding.detail, " to ", finding.fix->value, " until the next boot");
    finding.lost.clear();
    finding.remedy.clear();
    finding.fixed = true;
  }
  return findings;
}

bool is_usable(const std::vector<Finding>& findings) {
  return std::ranges::none_of(
      findings, [](const Finding& finding) { return finding.verdict == Verdict::kMissing; });
}

}  // namespace alcove::doctor
