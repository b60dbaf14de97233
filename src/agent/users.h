// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace alcove::agent {

// An account of the sandbox, as a process needs it.
struct User {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
  std::string home;
  // The primary group first, then the groups that list the name as a member.
  std::vector<gid_t> groups;
};

// What /etc/passwd and /etc/group said at one time. Immutable.
class Accounts {
 public:
  // Broken lines are skipped.
  Accounts(std::string_view passwd, std::string_view group);

  // By name only: a numeric string is not a uid. "root" exists in every root, also in one without
  // a passwd file.
  std::optional<User> find(std::string_view name) const;
  // Decimal id if there is no such name.
  std::string user_name(uid_t uid) const;
  std::string group_name(gid_t gid) const;

 private:
  struct Account {
    std::string name;
    uid_t uid;
    gid_t gid;
    std::string home;
  };
  struct Group {
    std::string name;
    gid_t gid;
    std::vector<std::string> members;
  };

  std::vector<Account> accounts_;
  std::vector<Group> groups_;
};

// The sandbox's accounts, read again when a file changes. getpwnam is no choice in a static
// program: it may load the guest's NSS libraries. Thread-safe.
class UserDatabase {
 public:
  explicit UserDatabase(std::string passwd_path = "/etc/passwd",
                        std::string group_path = "/etc/group");

  std::shared_ptr<const Accounts> accounts();
  // kUnauthenticated for an unknown name.
  Result<User> find(std::string_view name);

 private:
  // What tells a changed file from a kept one.
  struct Stamp {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = -1;
    timespec modified{};
    timespec changed{};
    bool operator==(const Stamp& other) const;
  };
  static Stamp stamp_of(const std::string& path);

  std::string passwd_path_;
  std::string group_path_;
  std::mutex mutex_;
  Stamp passwd_stamp_;
  Stamp group_stamp_;
  std::shared_ptr<const Accounts> accounts_;
};

}  // namespace alcove::agent
