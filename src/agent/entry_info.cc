// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/entry_info.h"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <utility>

#include "agent/paths.h"
#include "agent/root_mount.h"
#include "base/strings.h"

namespace alcove::agent {
namespace {

FileType file_type(mode_t mode) {
  if (S_ISREG(mode)) return FileType::kFile;
  if (S_ISDIR(mode)) return FileType::kDirectory;
  return FileType::kUnspecified;
}

std::string resolved_link(const std::string& path) {
  const std::unique_ptr<char, decltype(&::free)> resolved(::realpath(path.c_str(), nullptr),
                                                          &::free);
  return resolved ? std::string(resolved.get()) : path;
}

// The last `width` digits of a number that is not negative.
void append_digits(std::string& out, int64_t value, size_t width) {
  out.append(width, '0');
  for (size_t at = out.size(); width > 0; --width, value /= 10) {
    out[--at] = static_cast<char>('0' + value % 10);
  }
}

// `access` leads to the same file as `path`, perhaps on a shorter way.
Result<EntryInfo> read(const std::string& access, std::string path, std::string name,
                       const Accounts& accounts, Links links) {
  struct stat info{};
  if (::lstat(access.c_str(), &info) != 0) {
    const int error_number = errno;
    const Error error = Error::from_errno(error_number, cat("stat '", path, "'"));
    if (error_number == ENOENT) return fail(error);
    return fail(Code::kInternal, error.message());
  }
  EntryInfo entry;
  entry.name = std::move(name);
  entry.path = std::move(path);
  entry.size = info.st_size;
  entry.permissions = permission_text(info.st_mode);
  entry.owner = accounts.user_name(info.st_uid);
  entry.group = accounts.group_name(info.st_gid);
  entry.modified = info.st_mtim;
  if (S_ISLNK(info.st_mode)) {
    if (links == Links::kOnRootMount && !stays_on_root_mount(entry.path)) {
      return fail_errno(EXDEV, entry.path);
    }
    entry.is_symlink = true;
    struct stat target{};
    if (::stat(access.c_str(), &target) == 0) {
      entry.type = file_type(target.st_mode);
      entry.mode = target.st_mode & 0777;
      entry.symlink_target = resolved_link(entry.path);
    } else {
      entry.symlink_target = entry.path;
    }
  } else {
    entry.type = file_type(info.st_mode);
    entry.mode = info.st_mode & 0777;
  }
  if (entry.type != FileType::kUnspecified) entry.metadata = read_metadata(access);
  return entry;
}

}  // namespace

Result<EntryInfo> read_entry(const std::string& path, const Accounts& accounts) {
  return read(path, path, base_name(path), accounts, Links::kAnywhere);
}

Result<EntryInfo> read_entry_here(std::string name, std::string_view directory,
                                  const Accounts& accounts, Links links) {
  std::string path;
  path.reserve(directory.size() + 1 + name.size());
  path += directory;
  if (!path.ends_with('/')) path += '/';
  path += name;
  const std::string access = name;
  return read(access, std::move(path), std::move(name), accounts, links);
}

std::string permission_text(mode_t mode) {
  std::string text;
  if (S_ISDIR(mode)) text += 'd';
  if (S_ISLNK(mode)) text += 'L';
  if (S_ISBLK(mode) || S_ISCHR(mode)) text += 'D';
  if (S_ISFIFO(mode)) text += 'p';
  if (S_ISSOCK(mode)) text += 'S';
  if (mode & S_ISUID) text += 'u';
  if (mode & S_ISGID) text += 'g';
  if (S_ISCHR(mode)) text += 'c';
  if (mode & S_ISVTX) text += 't';
  if (text.empty()) text += '-';
  constexpr std::string_view kLetters = "rwxrwxrwx";
  for (size_t i = 0; i < kLetters.size(); ++i) {
    text += (mode & (0400u >> i)) != 0 ? kLetters[i] : '-';
  }
  return text;
}

std::string timestamp_text(const timespec& time) {
  // RFC 3339 knows the years 0 to 9999 only. (gmtime_r would read the guest's time zone file.)
  const std::chrono::seconds since_epoch(
      std::clamp<int64_t>(time.tv_sec, -62'167'219'200, 253'402'300'799));
  const auto days = std::chrono::floor<std::chrono::days>(since_epoch);
  const std::chrono::year_month_day date{std::chrono::sys_days(days)};
  const std::chrono::hh_mm_ss clock(since_epoch - days);
  std::string out;
  append_digits(out, int{date.year()}, 4);
  out += '-';
  append_digits(out, unsigned{date.month()}, 2);
  out += '-';
  append_digits(out, unsigned{date.day()}, 2);
  out += 'T';
  append_digits(out, clock.hours().count(), 2);
  out += ':';
  append_digits(out, clock.minutes().count(), 2);
  out += ':';
  append_digits(out, clock.seconds().count(), 2);
  if (time.tv_nsec != 0) {
    out += '.';
    if (time.tv_nsec % 1'000'000 == 0) {
      append_digits(out, time.tv_nsec / 1'000'000, 3);
    } else if (time.tv_nsec % 1'000 == 0) {
      append_digits(out, time.tv_nsec / 1'000, 6);
    } else {
      append_digits(out, time.tv_nsec, 9);
    }
  }
  out += 'Z';
  return out;
}

}  // namespace alcove::agent
