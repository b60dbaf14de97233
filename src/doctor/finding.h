// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <optional>
#include <string>

namespace alcove::doctor {

enum class Verdict {
  kOk,
  // Works, with less.
  kWarning,
  // No sandbox can run.
  kMissing,
};

// "ok", "warning", "missing"
const char* verdict_name(Verdict verdict);

// A setting of the running kernel that is safe to raise.
struct Fix {
  std::string path;
  std::string value;
};

// What one check found.
struct Finding {
  std::string name;  // of the requirement: "kernel", "fs.inotify.max_user_instances"
  Verdict verdict = Verdict::kOk;
  std::string detail;  // what is there
  std::string lost;    // what does not work without it; empty if ok
  std::string remedy;  // what to do; empty if ok
  std::optional<Fix> fix;
  // The fix was applied just now.
  bool fixed = false;
};

}  // namespace alcove::doctor
