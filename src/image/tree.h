// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/stat.h>

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace alcove::image {

// What a tree's files may be owned by on disk, whoever they appear to be inside a sandbox.
inline constexpr uint32_t kIdsPerLayer = 65536;

struct TreeEntry {
  int parent_fd;
  std::string name;
  // Relative to the root of the walk, for messages.
  std::string_view path;
  struct stat st;
};

// Called for each file and directory below a root. Content may be hostile; nobody changes it
// during the walk.
class TreeVisitor {
 public:
  virtual ~TreeVisitor() = default;
  // Before a directory's content; a removed directory or file is not entered.
  virtual Result<void> enter(const TreeEntry& entry) = 0;
  // After a directory's content.
  virtual Result<void> leave(const TreeEntry& entry) {
    (void)entry;
    return {};
  }
};

// Visits everything below `root` (not the root itself) in name order without following symbolic
// links or entering other file systems. Uses two descriptors at any depth.
Result<void> walk_tree(const std::string& root, TreeVisitor& visitor);

// Deletes `path` and everything below; success if it does not exist.
Result<void> remove_tree(const std::string& path);

// A line about something that was left out ("device node dev/sda").
using Notice = std::function<void(std::string_view)>;

// Copies what is below `from` into the existing directory `to`, and the attributes of `from`
// itself: owners, modes, times, hard links, user.* attributes and file capabilities are kept.
// Device nodes and sockets are left out; owners beyond kIdsPerLayer are refused.
Result<void> copy_tree(const std::string& from, const std::string& to, const Notice& notice);

// Makes a tree that a host program wrote fit to be a layer: removes device nodes and sockets,
// refuses owners beyond kIdsPerLayer.
Result<void> sanitize_tree(const std::string& root, const Notice& notice);

// Turns the upper directory of a sandbox whose ids start at `base` (root inside is `base` on disk)
// into a layer: owners become 0..65535; setuid bits, file capabilities and ACLs keep their meaning.
// Overlay's whiteouts and attributes stay. Owners outside the range are refused. The root
// directory itself is included.
Result<void> shift_owners(const std::string& root, uint32_t base);

}  // namespace alcove::image
