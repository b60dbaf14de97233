// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <dirent.h>
#include <sys/inotify.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "agent/entry_info.h"
#include "agent/users.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace alcove::agent {

enum class EventType { kUnspecified = 0, kCreate, kWrite, kRemove, kRename, kChmod };

struct FilesystemEvent {
  // Relative to the watched directory; "." is the directory itself.
  std::string name;
  EventType type = EventType::kUnspecified;
  // As it was when the event was handled; never for kRemove and kRename.
  std::optional<EntryInfo> entry;
};

struct WatchOptions {
  bool recursive = false;
  bool include_entry = false;
  bool allow_network_mounts = false;
};

// What happens in a directory, or in the whole tree below it (protocol/envd.md 2B.4). Everything
// here blocks on the file system; one thread at a time.
class TreeWatch {
 public:
  // kNotFound, kInvalidArgument for what is no directory or lies on a network mount, kInternal
  // when the kernel's limits are reached; the message says which.
  static Result<std::unique_ptr<TreeWatch>> open(std::string path, WatchOptions options,
                                                 std::shared_ptr<const Accounts> accounts);

  // Readable when there is something to take.
  int fd() const { return fd_.get(); }

  // What the kernel has reported since the last call, in order, as far as it fits into one read.
  // Directories that appeared are watched, and what they contained by then is reported as created;
  // with about kPortion events it returns, and goes on from there when it is called again. After an
  // error the watch is of no more use.
  static constexpr size_t kPortion = 4096;
  Result<std::vector<FilesystemEvent>> take();
  // True after a portion: there is more to take, whether fd() is readable or not.
  bool has_more() const { return is_walking() || !unread_.empty(); }

 private:
  TreeWatch(UniqueFd fd, std::string path, WatchOptions options,
            std::shared_ptr<const Accounts> accounts);

  // A directory that left its place and has not turned up elsewhere in the tree.
  struct Move {
    uint32_t cookie = 0;
    std::string from;
  };
  struct DirectoryCloser {
    void operator()(DIR* directory) const { ::closedir(directory); }
  };
  using Events = std::vector<FilesystemEvent>;

  std::string absolute(const std::string& relative) const;
  Result<void> watch_root();
  // Some of waiting_ and all below is not watched yet.
  bool is_walking() const { return listing_ || !waiting_.empty(); }
  // Watches those directories; with `found`, reports what they contain as created, and leaves what
  // is over a portion for the next call.
  Result<void> walk(Events* found);
  // False if it vanished meanwhile.
  Result<bool> add_watch(const std::string& relative);
  void forget_below(const std::string& relative);
  void remember_move(uint32_t cookie, std::string from);
  // Where the directory of the rename with this cookie was.
  std::optional<std::string> take_move(uint32_t cookie);
  // False if the directory was not watched.
  bool rename_below(const std::string& from, const std::string& to);

  Result<void> read_queue();
  Result<void> translate(const inotify_event& event, Events& events);
  void follow_directory(const inotify_event& event, const std::string& name);
  void report_self(uint32_t mask, bool is_root, const std::string& relative, Events& events);
  void report(EventType type, std::string name, Events& events) const;

  UniqueFd fd_;
  const std::string path_;
  const WatchOptions options_;
  const std::shared_ptr<const Accounts> accounts_;
  // By watch descriptor: the directory's path relative to the root, which is "".
  std::unordered_map<int, std::string> directories_;
  // Oldest first. Renames in different directories may come interleaved. Bounded: of some nothing
  // more is heard, because they were not watched.
  std::deque<Move> moves_;
  // Directories that appeared and are not watched yet; the last is the next one. No event is
  // handled before they are.
  std::vector<std::string> waiting_;
  // The one whose content is being reported, if any.
  std::unique_ptr<DIR, DirectoryCloser> listing_;
  std::string listed_;
  // What was read from the kernel and not handled yet.
  std::string unread_;
};

}  // namespace alcove::agent
