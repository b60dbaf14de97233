// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "main/data_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/strings.h"

namespace alcove {
namespace {

namespace fs = std::filesystem;

Result<void> check_version(const std::string& path) {
  const std::string file = path + "/version";
  std::ifstream in(file);
  if (!in) return write_file_atomically(file, cat(kDataFormat, "\n"), 0644);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  const auto version = parse_number<int>(trim(text));
  if (!version) {
    return fail(Code::kFailedPrecondition,
                cat(file, " does not hold a version number: is this an alcove data directory?"));
  }
  if (*version > kDataFormat) {
    return fail(Code::kFailedPrecondition,
                cat("the data directory ", path, " was written by a newer alcove (format ",
                    *version, ", this program reads up to ", kDataFormat,
                    "): install that version again, or name another --data-dir"));
  }
  return {};
}

}  // namespace

Result<void> write_file_atomically(const std::string& path, const std::string& content,
                                   unsigned mode) {
  const std::string temporary = path + ".new";
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!fd.valid()) return fail_errno(errno, cat("write ", temporary));
  if (::fchmod(fd.get(), mode) != 0 ||
      ::write(fd.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()) ||
      ::fsync(fd.get()) != 0) {
    return fail_errno(errno, cat("write ", temporary));
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    return fail_errno(errno, cat("rename ", temporary));
  }
  return {};
}

Result<DataDir> DataDir::open(const std::string& given) {
  std::error_code error;
  const std::string path = fs::absolute(given, error).lexically_normal().string();
  fs::create_directories(path, error);
  if (error) return fail_errno(error.value(), cat("make data directory ", path));

  UniqueFd lock(::open((path + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) return fail_errno(errno, cat("open ", path, "/lock"));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return fail(Code::kFailedPrecondition,
                cat("another alcove server uses the data directory ", path,
                    ": stop it (`./dev down`) or name another --data-dir"));
  }
  ALCOVE_TRY(check_version(path));
  // Not "layers": LayerStore makes it, closed to others.
  for (const char* child : {"agents", "log"}) {
    fs::create_directories(path + "/" + child, error);
    if (error) return fail_errno(error.value(), cat("make ", path, "/", child));
  }
  return DataDir(path, std::move(lock));
}

}  // namespace alcove
