// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "node/agent_store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/sha256.h"
#include "base/strings.h"
#include "base/unique_fd.h"

namespace alcove::node {
namespace fs = std::filesystem;

Result<std::string> AgentStore::add(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), {});
  if (!file || content.empty()) return fail(Code::kNotFound, cat("read agent program ", path));

  std::error_code error;
  fs::create_directories(directory_, error);
  if (error) return fail_errno(error.value(), cat("make ", directory_));
  std::string hash = sha256_hex(content);
  const std::string target = this->path(hash);
  if (fs::exists(target, error)) return hash;

  // Complete under its name or not there at all: the name promises the content.
  const std::string temporary = target + ".new";
  UniqueFd out(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755));
  if (!out.valid()) return fail_errno(errno, cat("write ", temporary));
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = ::write(out.get(), content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(errno, cat("write ", temporary));
    done += static_cast<size_t>(n);
  }
  // The umask of whoever starts the server must not decide who can run pid 1.
  if (::fchmod(out.get(), 0755) != 0 || ::fsync(out.get()) != 0) {
    return fail_errno(errno, cat("write ", temporary));
  }
  out.reset();
  if (::rename(temporary.c_str(), target.c_str()) != 0) {
    return fail_errno(errno, cat("rename ", temporary));
  }
  return hash;
}

Result<void> AgentStore::keep_only(const std::set<std::string>& hashes) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory_, error)) {
    if (!hashes.contains(entry.path().filename().string())) fs::remove(entry.path(), error);
  }
  if (error) return fail_errno(error.value(), cat("clean ", directory_));
  return {};
}

}  // namespace alcove::node
