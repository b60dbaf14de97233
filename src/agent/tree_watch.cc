// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/tree_watch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/strings.h"

namespace alcove::agent {
namespace {

constexpr uint32_t kMask = IN_CREATE | IN_MODIFY | IN_DELETE | IN_DELETE_SELF | IN_MOVED_FROM |
                           IN_MOVED_TO | IN_MOVE_SELF | IN_ATTRIB | IN_ONLYDIR;

// File systems whose changes by others the kernel does not see: NFS, CIFS, SMB, SMB2, FUSE.
constexpr std::array<uint32_t, 5> kNetworkMagics = {0x6969, 0xFF534D42, 0x517B, 0xFE534D42,
                                                    0x65735546};

// Enough for a few hundred events; more are taken by the next call.
constexpr size_t kReadSize = 16 * 1024;
// The events of one rename follow each other closely; only renames at the same moment come between.
constexpr size_t kMostMoves = 1024;

// Of a path that is too long.
constexpr size_t kShownPath = 200;

Result<void> check_directory(const std::string& path, const WatchOptions& options) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return fail(Code::kNotFound, cat("path '", path, "' does not exist"));
    return fail(Code::kInternal, Error::from_errno(errno, path).message());
  }
  if (!S_ISDIR(info.st_mode)) {
    return fail(Code::kInvalidArgument, cat("path '", path, "' is not a directory"));
  }
  struct statfs system{};
  if (options.allow_network_mounts || ::statfs(path.c_str(), &system) != 0) return {};
  const auto magic = static_cast<uint32_t>(system.f_type);
  if (std::find(kNetworkMagics.begin(), kNetworkMagics.end(), magic) == kNetworkMagics.end()) {
    return {};
  }
  return fail(Code::kInvalidArgument,
              cat("path '", path, "' is on a network file system, whose events are incomplete"));
}

Error limit_error(int number, const std::string& path) {
  if (number == ENOSPC) {
    return Error(Code::kInternal, cat("cannot watch '", path,
                                      "': the limit fs.inotify.max_user_watches is reached"));
  }
  if (number == EMFILE) {
    return Error(Code::kInternal, cat("cannot watch '", path,
                                      "': the limit fs.inotify.max_user_instances is reached"));
  }
  if (number == ENAMETOOLONG) {
    return Error(Code::kInternal, cat("cannot watch '", path.substr(0, kShownPath),
                                      "...': the path is longer than the kernel takes"));
  }
  return Error(Code::kInternal, Error::from_errno(number, cat("watch '", path, "'")).message());
}

std::string child_path(const std::string& directory, std::string_view name) {
  return directory.empty() ? std::string(name) : cat(directory, "/", name);
}

bool is_or_is_below(const std::string& path, const std::string& directory) {
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

struct Child {
  std::string name;
  bool is_directory = false;
};

// The next `most` of them, fewer at the end. Sorted, so that what is reported does not depend on
// the file system, but for directories that are longer than that.
std::vector<Child> next_children(DIR* directory, size_t most) {
  std::vector<Child> children;
  while (children.size() < most) {
    const dirent* entry = ::readdir(directory);
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    bool is_directory = entry->d_type == DT_DIR;
    if (entry->d_type == DT_UNKNOWN) {
      struct stat info{};
      is_directory =
          ::fstatat(::dirfd(directory), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
          S_ISDIR(info.st_mode);
    }
    children.push_back({std::string(name), is_directory});
  }
  std::sort(children.begin(), children.end(),
            [](const Child& a, const Child& b) { return a.name < b.name; });
  return children;
}

}  // namespace

TreeWatch::TreeWatch(UniqueFd fd, std::string path, WatchOptions options,
                     std::shared_ptr<const Accounts> accounts)
    : fd_(std::move(fd)),
      path_(std::move(path)),
      options_(options),
      accounts_(std::move(accounts)) {}

Result<std::unique_ptr<TreeWatch>> TreeWatch::open(std::string path, WatchOptions options,
                                                   std::shared_ptr<const Accounts> accounts) {
  ALCOVE_TRY(check_directory(path, options));
  UniqueFd fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!fd.valid()) return fail(limit_error(errno, path));
  std::unique_ptr<TreeWatch> watch(
      new TreeWatch(std::move(fd), std::move(path), options, std::move(accounts)));
  ALCOVE_TRY(watch->watch_root());
  return watch;
}

std::string TreeWatch::absolute(const std::string& relative) const {
  if (relative.empty()) return path_;
  return path_.ends_with('/') ? cat(path_, relative) : cat(path_, "/", relative);
}

Result<void> TreeWatch::watch_root() {
  // The root may be a link; links below it are not followed.
  const int watch = ::inotify_add_watch(fd_.get(), path_.c_str(), kMask);
  if (watch < 0) return fail(limit_error(errno, path_));
  directories_[watch] = "";
  if (options_.recursive) listing_.reset(::opendir(path_.c_str()));
  return walk(nullptr);
}

Result<bool> TreeWatch::add_watch(const std::string& relative) {
  const std::string path = absolute(relative);
  const int watch = ::inotify_add_watch(fd_.get(), path.c_str(), kMask | IN_DONT_FOLLOW);
  if (watch >= 0) {
    directories_[watch] = relative;
    return true;
  }
  // It is gone again, or something else is in its place: events about that follow.
  if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EACCES) return false;
  return fail(limit_error(errno, path));
}

// A list instead of recursion: the depth of the tree is up to whoever makes it.
Result<void> TreeWatch::walk(Events* found) {
  while (is_walking()) {
    size_t most = kPortion;
    if (found != nullptr) {
      if (found->size() >= kPortion) break;
      most -= found->size();
    }
    if (!listing_) {
      listed_ = std::move(waiting_.back());
      waiting_.pop_back();
      // Watched before it is listed, so that nothing is missed in between.
      ALCOVE_TRY_ASSIGN(const bool there, add_watch(listed_));
      if (there) listing_.reset(::opendir(absolute(listed_).c_str()));
      // It may have vanished.
      if (!listing_) continue;
    }
    const std::vector<Child> children = next_children(listing_.get(), most);
    if (children.size() < most) listing_.reset();
    if (found != nullptr) {
      for (const Child& child : children) {
        report(EventType::kCreate, child_path(listed_, child.name), *found);
      }
    }
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
      if (child->is_directory) waiting_.push_back(child_path(listed_, child->name));
    }
  }
  if (waiting_.empty()) waiting_.shrink_to_fit();
  return {};
}

void TreeWatch::forget_below(const std::string& relative) {
  for (auto at = directories_.begin(); at != directories_.end();) {
    if (is_or_is_below(at->second, relative)) {
      (void)::inotify_rm_watch(fd_.get(), at->first);
      at = directories_.erase(at);
    } else {
      ++at;
    }
  }
}

void TreeWatch::remember_move(uint32_t cookie, std::string from) {
  if (moves_.size() >= kMostMoves) moves_.pop_front();
  moves_.push_back({cookie, std::move(from)});
}

std::optional<std::string> TreeWatch::take_move(uint32_t cookie) {
  const auto found = std::find_if(moves_.begin(), moves_.end(),
                                  [&](const Move& move) { return move.cookie == cookie; });
  if (found == moves_.end()) return std::nullopt;
  std::string from = std::move(found->from);
  moves_.erase(found);
  return from;
}

bool TreeWatch::rename_below(const std::string& from, const std::string& to) {
  bool found = false;
  for (auto& [watch, directory] : directories_) {
    if (!is_or_is_below(directory, from)) continue;
    found = found || directory == from;
    directory = cat(to, directory.substr(from.size()));
  }
  for (Move& move : moves_) {
    if (is_or_is_below(move.from, from)) move.from = cat(to, move.from.substr(from.size()));
  }
  return found;
}

Result<std::vector<FilesystemEvent>> TreeWatch::take() {
  Events events;
  ALCOVE_TRY(walk(&events));
  if (!has_more()) ALCOVE_TRY(read_queue());
  size_t at = 0;
  while (at < unread_.size() && events.size() < kPortion && !is_walking()) {
    const auto& event = *reinterpret_cast<const inotify_event*>(unread_.data() + at);
    ALCOVE_TRY(translate(event, events));
    at += sizeof event + event.len;
    ALCOVE_TRY(walk(&events));
  }
  unread_.erase(0, at);
  if (unread_.empty()) unread_.shrink_to_fit();
  return events;
}

Result<void> TreeWatch::read_queue() {
  char buffer[kReadSize];
  const ssize_t count = ::read(fd_.get(), buffer, sizeof buffer);
  if (count >= 0) {
    unread_.assign(buffer, static_cast<size_t>(count));
  } else if (errno != EAGAIN && errno != EINTR) {
    return fail(Code::kInternal, Error::from_errno(errno, "read events").message());
  }
  return {};
}

Result<void> TreeWatch::translate(const inotify_event& event, Events& events) {
  if ((event.mask & IN_Q_OVERFLOW) != 0) {
    return fail(Code::kInternal, "events came faster than they were taken, and some are lost");
  }
  const auto found = directories_.find(event.wd);
  if (found == directories_.end()) return {};
  // A copy: what follows changes the map.
  const std::string directory = found->second;
  if ((event.mask & IN_IGNORED) != 0) {
    directories_.erase(found);
    return {};
  }
  if (event.len == 0) {
    report_self(event.mask, directory.empty(), directory, events);
    return {};
  }
  const std::string name = child_path(directory, event.name);
  if ((event.mask & (IN_CREATE | IN_MOVED_TO)) != 0) report(EventType::kCreate, name, events);
  if ((event.mask & IN_MOVED_FROM) != 0) report(EventType::kRename, name, events);
  if ((event.mask & IN_ATTRIB) != 0) report(EventType::kChmod, name, events);
  if ((event.mask & IN_MODIFY) != 0) report(EventType::kWrite, name, events);
  if ((event.mask & IN_DELETE) != 0) report(EventType::kRemove, name, events);
  if (options_.recursive && (event.mask & IN_ISDIR) != 0) {
    follow_directory(event, name);
  }
  return {};
}

// Events of a rename come in this order: MOVED_FROM, MOVED_TO if that is in the tree too, and
// MOVE_SELF of the directory (report_self).
void TreeWatch::follow_directory(const inotify_event& event, const std::string& name) {
  if ((event.mask & IN_MOVED_FROM) != 0) {
    remember_move(event.cookie, name);
    return;
  }
  if ((event.mask & (IN_CREATE | IN_MOVED_TO)) == 0) return;
  const auto from = take_move(event.cookie);
  // Of what has left this place nothing is left to hear.
  std::erase_if(moves_, [&](const Move& move) { return is_or_is_below(move.from, name); });
  if (from) {
    // What was here before is replaced; an empty directory at most.
    forget_below(name);
    // Else it was renamed before its creation was handled.
    if (rename_below(*from, name)) return;
  }
  waiting_.push_back(name);
}

void TreeWatch::report_self(uint32_t mask, bool is_root, const std::string& relative,
                            Events& events) {
  if (!is_root) {
    // The directory above reports the rest; here only: it left the tree.
    if ((mask & IN_MOVE_SELF) == 0) return;
    const auto left = std::find_if(moves_.begin(), moves_.end(),
                                   [&](const Move& move) { return move.from == relative; });
    if (left == moves_.end()) return;
    moves_.erase(left);
    forget_below(relative);
    return;
  }
  if ((mask & IN_MOVE_SELF) != 0) {
    report(EventType::kRename, ".", events);
    // Its path leads elsewhere now.
    const auto watched = std::exchange(directories_, {});
    for (const auto& [watch, directory] : watched) (void)::inotify_rm_watch(fd_.get(), watch);
  }
  if ((mask & IN_ATTRIB) != 0) report(EventType::kChmod, ".", events);
  if ((mask & IN_DELETE_SELF) != 0) report(EventType::kRemove, ".", events);
}

void TreeWatch::report(EventType type, std::string name, Events& events) const {
  FilesystemEvent event{std::move(name), type, std::nullopt};
  const bool may_have_entry = type != EventType::kRemove && type != EventType::kRename;
  if (options_.include_entry && may_have_entry) {
    const std::string path = event.name == "." ? path_ : absolute(event.name);
    if (auto entry = read_entry(path, *accounts_)) event.entry = *std::move(entry);
  }
  events.push_back(std::move(event));
}

}  // namespace alcove::agent
