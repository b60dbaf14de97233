// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/users.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "agent/file_io.h"
#include "base/strings.h"
#include "base/unique_fd.h"

namespace alcove::agent {
namespace {

// A passwd file of hundreds of thousands of users still fits; a device or an endless file does not.
constexpr size_t kMaxFileSize = 16u << 20;

bool equal_times(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

std::string default_root_home() {
  struct stat info{};
  return ::stat("/root", &info) == 0 && S_ISDIR(info.st_mode) ? "/root" : "/";
}

}  // namespace

Accounts::Accounts(std::string_view passwd, std::string_view group) {
  for (const std::string_view line : split(passwd, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() < 7 || fields[0].empty()) continue;
    const auto uid = parse_number<uid_t>(fields[2]);
    const auto gid = parse_number<gid_t>(fields[3]);
    if (!uid || !gid) continue;
    accounts_.push_back({std::string(fields[0]), *uid, *gid, std::string(fields[5])});
  }
  for (const std::string_view line : split(group, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() < 4 || fields[0].empty()) continue;
    const auto gid = parse_number<gid_t>(fields[2]);
    if (!gid) continue;
    Group parsed{std::string(fields[0]), *gid, {}};
    for (const std::string_view member : split(fields[3], ',')) {
      if (!trim(member).empty()) parsed.members.emplace_back(trim(member));
    }
    groups_.push_back(std::move(parsed));
  }
}

std::optional<User> Accounts::find(std::string_view name) const {
  User user;
  const auto account = std::find_if(accounts_.begin(), accounts_.end(),
                                    [&](const Account& a) { return a.name == name; });
  if (account != accounts_.end()) {
    user = {account->name, account->uid, account->gid, account->home, {}};
    if (user.home.empty()) user.home = "/";
  } else if (name == "root") {
    user = {"root", 0, 0, default_root_home(), {}};
  } else {
    return {};
  }
  user.groups.push_back(user.gid);
  for (const Group& group : groups_) {
    const bool member =
        std::find(group.members.begin(), group.members.end(), name) != group.members.end();
    const bool known =
        std::find(user.groups.begin(), user.groups.end(), group.gid) != user.groups.end();
    if (member && !known) user.groups.push_back(group.gid);
  }
  return user;
}

std::string Accounts::user_name(uid_t uid) const {
  for (const Account& account : accounts_) {
    if (account.uid == uid) return account.name;
  }
  return uid == 0 ? "root" : std::to_string(uid);
}

std::string Accounts::group_name(gid_t gid) const {
  for (const Group& group : groups_) {
    if (group.gid == gid) return group.name;
  }
  return gid == 0 ? "root" : std::to_string(gid);
}

UserDatabase::UserDatabase(std::string passwd_path, std::string group_path)
    : passwd_path_(std::move(passwd_path)), group_path_(std::move(group_path)) {}

bool UserDatabase::Stamp::operator==(const Stamp& other) const {
  return device == other.device && inode == other.inode && size == other.size &&
         equal_times(modified, other.modified) && equal_times(changed, other.changed);
}

UserDatabase::Stamp UserDatabase::stamp_of(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return {};
  return {info.st_dev, info.st_ino, info.st_size, info.st_mtim, info.st_ctim};
}

std::shared_ptr<const Accounts> UserDatabase::accounts() {
  const std::lock_guard lock(mutex_);
  const Stamp passwd_stamp = stamp_of(passwd_path_);
  const Stamp group_stamp = stamp_of(group_path_);
  if (!accounts_ || !(passwd_stamp == passwd_stamp_) || !(group_stamp == group_stamp_)) {
    // An unreadable file is an empty one: root must work in any root directory.
    accounts_ =
        std::make_shared<const Accounts>(read_regular_file(passwd_path_, kMaxFileSize).value_or(""),
                                         read_regular_file(group_path_, kMaxFileSize).value_or(""));
    passwd_stamp_ = passwd_stamp;
    group_stamp_ = group_stamp;
  }
  return accounts_;
}

Result<User> UserDatabase::find(std::string_view name) {
  auto user = accounts()->find(name);
  if (!user) return fail(Code::kUnauthenticated, cat("user '", name, "' does not exist"));
  return *std::move(user);
}

}  // namespace alcove::agent
