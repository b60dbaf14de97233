// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/runner_files.h"

#include <filesystem>
#include <fstream>

#include "base/strings.h"

namespace alcove::interpreter {

Result<void> write_runner_files(const std::string& folder) {
  for (const RunnerFile& file : runner_files()) {
    const std::filesystem::path path = cat(folder, "/", file.path);
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) return fail_errno(error.value(), cat("make ", path.parent_path().string()));
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(file.content.data(), static_cast<std::streamsize>(file.content.size()));
    out.flush();
    if (!out) return fail(Code::kInternal, cat("write ", path.string()));
  }
  return {};
}

}  // namespace alcove::interpreter
