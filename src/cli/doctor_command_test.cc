// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/doctor_command.h"

#include <gtest/gtest.h>

namespace alcove::cli {
namespace {

using doctor::Finding;
using doctor::Verdict;

Finding finding(std::string name, Verdict verdict, std::string detail) {
  Finding made;
  made.name = std::move(name);
  made.verdict = verdict;
  made.detail = std::move(detail);
  if (verdict != Verdict::kOk) {
    made.lost = "something";
    made.remedy = "do this";
  }
  return made;
}

TEST(ShowFindings, EveryProblemHasItsRemedyBelow) {
  EXPECT_EQ(show_findings({finding("kernel", Verdict::kOk, "6.1"),
                           finding("pid_max", Verdict::kWarning, "32768")},
                          Show::kAll),
            "ok       kernel   6.1\n"
            "warning  pid_max  32768\n"
            "         lost:   something\n"
            "         remedy: do this\n"
            "\nok: 1, warning: 1, missing: 0\n");
}

TEST(ShowFindings, ProblemsOnly) {
  Finding raised = finding("inotify", Verdict::kOk, "raised");
  raised.fixed = true;
  EXPECT_EQ(show_findings({finding("kernel", Verdict::kOk, "6.1"), raised}, Show::kProblems),
            "fixed    inotify  raised\n");
  EXPECT_EQ(show_findings({finding("kernel", Verdict::kOk, "6.1")}, Show::kProblems), "");
  EXPECT_EQ(show_findings({finding("kernel", Verdict::kMissing, "5.4")}, Show::kProblems),
            "missing  kernel  5.4\n"
            "         lost:   something\n"
            "         remedy: do this\n"
            "This machine cannot run sandboxes until what is missing is there.\n");
}

}  // namespace
}  // namespace alcove::cli
