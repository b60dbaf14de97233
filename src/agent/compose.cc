// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/compose.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "agent/file_io.h"
#include "agent/fs_operations.h"
#include "agent/upload_file.h"
#include "base/defer.h"
#include "base/ids.h"
#include "base/strings.h"
#include "base/unique_fd.h"
#include "connect/json_codec.h"
#include "connect/json_writer.h"

namespace alcove::agent {
namespace {

constexpr size_t kPieceSize = 256 * 1024;
constexpr size_t kKernelPieceSize = 1ull << 30;

Result<void> check_regular(const struct stat& info, const std::string& path) {
  if (S_ISREG(info.st_mode)) return {};
  return fail(Code::kInvalidArgument, cat("source '", path, "' is not a regular file"));
}

bool is_same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// All of them are looked at before anything is written.
Result<void> check_sources(const std::vector<std::string>& sources,
                           const std::string& destination) {
  struct stat target{};
  const bool exists = ::lstat(destination.c_str(), &target) == 0;
  if (exists && S_ISDIR(target.st_mode)) {
    return fail(Code::kInvalidArgument, cat("destination '", destination, "' is a directory"));
  }
  for (const std::string& source : sources) {
    struct stat info{};
    if (::stat(source.c_str(), &info) != 0) {
      if (errno != ENOENT) return fail_errno(errno, cat("stat '", source, "'"));
      return fail(Code::kNotFound, cat("source '", source, "' does not exist"));
    }
    ALCOVE_TRY(check_regular(info, source));
    // Also under another name: the result would be deleted together with its source.
    if (source == destination || (exists && is_same_file(info, target))) {
      return fail(Code::kInvalidArgument, cat("source '", source, "' is the destination"));
    }
  }
  return {};
}

// In the kernel as far as it can, which shares blocks where the file system is able to; the rest
// (other file systems, files that do not say their size) by hand.
Result<void> append_file(int from, int to) {
  for (;;) {
    const ssize_t count = ::copy_file_range(from, nullptr, to, nullptr, kKernelPieceSize, 0);
    if (count > 0 || (count < 0 && errno == EINTR)) continue;
    if (count < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO)) {
      return fail_errno(errno, "copy");
    }
    break;
  }
  std::string piece(kPieceSize, '\0');
  for (;;) {
    ALCOVE_TRY_ASSIGN(const size_t count, read_once(from, piece.data(), piece.size()));
    if (count == 0) return {};
    ALCOVE_TRY(write_all(to, std::string_view(piece).substr(0, count)));
  }
}

Result<void> append_sources(const std::vector<std::string>& sources, int to) {
  for (const std::string& source : sources) {
    // O_NONBLOCK: a fifo that took the file's place since it was looked at must not hold us up.
    ALCOVE_TRY_ASSIGN(const UniqueFd from, open_file(source, O_RDONLY | O_NONBLOCK | O_NOCTTY));
    struct stat info{};
    if (::fstat(from.get(), &info) != 0) return fail_errno(errno, source);
    ALCOVE_TRY(check_regular(info, source));
    if (auto copied = append_file(from.get(), to); !copied) {
      return fail(copied.error().context(cat("'", source, "'")));
    }
  }
  return {};
}

}  // namespace

Result<ComposeRequest> decode_compose(std::string_view body) {
  ALCOVE_TRY_ASSIGN(const auto object, connect::parse_message(body));
  ComposeRequest request;
  ALCOVE_TRY_ASSIGN(request.sources, connect::read_strings(object, "sourcePaths"));
  ALCOVE_TRY_ASSIGN(request.destination, connect::read_string(object, "destination"));
  ALCOVE_TRY_ASSIGN(std::string username, connect::read_string(object, "username"));
  if (!username.empty()) request.username = std::move(username);
  if (request.sources.empty()) return fail(Code::kInvalidArgument, "source_paths is empty");
  if (request.destination.empty()) return fail(Code::kInvalidArgument, "destination is empty");
  return request;
}

Result<void> resolve_paths(ComposeRequest& request, const PathBase& base) {
  ALCOVE_TRY_ASSIGN(request.destination, resolve_path(request.destination, base));
  for (std::string& source : request.sources) {
    ALCOVE_TRY_ASSIGN(source, resolve_path(source, base));
  }
  return {};
}

Result<void> compose_files(const std::vector<std::string>& sources, const std::string& destination,
                           const User& owner) {
  ALCOVE_TRY(check_sources(sources, destination));
  ALCOVE_TRY(ensure_directory(parent_path(destination), owner));
  const std::string temporary = cat(destination, ".e2b-compose.", make_uuid(), ".tmp");
  ALCOVE_TRY_ASSIGN(UniqueFd fd, open_file(temporary, O_WRONLY | O_CREAT | O_EXCL, 0666));
  bool renamed = false;
  const Defer remove_temporary([&] {
    if (!renamed) ::unlink(temporary.c_str());
  });
  ALCOVE_TRY(append_sources(sources, fd.get()));
  if (::fchown(fd.get(), owner.uid, owner.gid) != 0) {
    return fail_errno(errno, cat("chown '", temporary, "'"));
  }
  // EINTR leaves the descriptor closed, too. EDQUOT and EIO can show up as late as here.
  if (::close(fd.release()) != 0 && errno != EINTR) return fail_errno(errno, temporary);
  if (::rename(temporary.c_str(), destination.c_str()) != 0) {
    return fail_errno(errno, cat("rename to '", destination, "'"));
  }
  renamed = true;
  for (const std::string& source : sources) {
    // One that is listed twice is gone already.
    if (::unlink(source.c_str()) != 0 && errno != ENOENT) {
      return fail_errno(errno, cat("'", destination, "' is composed, but '", source, "' remains"));
    }
  }
  return {};
}

int compose_status(const Error& error) {
  if (error.code() == Code::kNotFound && error.error_number() == 0) return 404;
  return UploadFile::status_of(error);
}

std::string encode_composed(std::string_view path) {
  std::string out = "{\"path\":";
  connect::append_json_string(out, path);
  out += ",\"name\":";
  connect::append_json_string(out, base_name(path));
  out += ",\"type\":\"file\"}";
  return out;
}

}  // namespace alcove::agent
