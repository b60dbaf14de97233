// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/doctor_command.h"

#include <algorithm>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/strings.h"
#include "doctor/kernel_system.h"

namespace alcove::cli {
namespace {

namespace json = boost::json;
using doctor::Finding;
using doctor::Verdict;

constexpr size_t kMarkWidth = 9;

json::object to_json(const std::vector<Finding>& findings) {
  json::array list;
  for (const Finding& finding : findings) {
    json::object entry{{"name", finding.name},
                       {"verdict", doctor::verdict_name(finding.verdict)},
                       {"detail", finding.detail}};
    if (!finding.lost.empty()) entry["lost"] = finding.lost;
    if (!finding.remedy.empty()) entry["remedy"] = finding.remedy;
    if (finding.fixed) entry["fixed"] = true;
    list.push_back(std::move(entry));
  }
  return {{"usable", doctor::is_usable(findings)}, {"findings", std::move(list)}};
}

size_t count(const std::vector<Finding>& findings, Verdict verdict) {
  return static_cast<size_t>(std::ranges::count(findings, verdict, &Finding::verdict));
}

std::string padded(std::string text, size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

}  // namespace

std::string show_findings(const std::vector<Finding>& findings, Show show) {
  size_t name_width = 0;
  for (const Finding& finding : findings) name_width = std::max(name_width, finding.name.size());
  std::string out;
  for (const Finding& finding : findings) {
    const bool in_order = finding.verdict == Verdict::kOk && !finding.fixed;
    if (show == Show::kProblems && in_order) continue;
    out += cat(padded(finding.fixed ? "fixed" : doctor::verdict_name(finding.verdict), kMarkWidth),
               padded(finding.name, name_width + 2), finding.detail, "\n");
    const std::string indent(kMarkWidth, ' ');
    if (!finding.lost.empty()) out += cat(indent, "lost:   ", finding.lost, "\n");
    if (!finding.remedy.empty()) out += cat(indent, "remedy: ", finding.remedy, "\n");
  }
  if (show == Show::kAll) {
    out += cat("\nok: ", count(findings, Verdict::kOk),
               ", warning: ", count(findings, Verdict::kWarning),
               ", missing: ", count(findings, Verdict::kMissing), "\n");
  }
  if (!doctor::is_usable(findings)) {
    out += "This machine cannot run sandboxes until what is missing is there.\n";
  }
  return out;
}

Result<int> run_doctor(const DoctorOptions& options) {
  const auto machine = doctor::this_machine();
  const std::vector<Finding> findings = options.fix
                                            ? doctor::examine_and_fix(*machine, options.plan)
                                            : doctor::examine(*machine, options.plan);
  if (options.format == Format::kJson) {
    ALCOVE_TRY(print_json(to_json(findings)));
  } else {
    ALCOVE_TRY(print(show_findings(findings, options.quiet ? Show::kProblems : Show::kAll)));
  }
  return doctor::is_usable(findings) ? kSuccess : kFailure;
}

}  // namespace alcove::cli
