// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "template/files_layer.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <optional>
#include <set>

#include "base/sha256.h"
#include "base/strings.h"
#include "image/file_copy.h"
#include "image/files.h"
#include "image/tree.h"
#include "network/guest_network.h"
#include "template/recipe_hash.h"

namespace alcove::templates {
namespace {

using Item = FilePlan::Item;

std::string hosts_file(const std::string& hostname) {
  return cat("127.0.0.1\tlocalhost ", hostname, "\n", "::1\tlocalhost ip6-localhost ip6-loopback ",
             hostname, "\n", "ff02::1\tip6-allnodes\n", "ff02::2\tip6-allrouters\n");
}

class Planner final : public image::TreeVisitor {
 public:
  Planner(const Recipe& recipe, std::string source_root)
      : recipe_(recipe), source_root_(std::move(source_root)) {}

  Result<void> enter(const image::TreeEntry& entry) override {
    Item item;
    item.path = std::string(entry.path);
    const auto named = recipe_.modes.find(item.path);
    if (named != recipe_.modes.end()) item.mode_source = Item::Mode::kNamed;
    switch (entry.st.st_mode & S_IFMT) {
      case S_IFDIR:
        item.type = Item::Type::kDirectory;
        item.mode = 0755;
        break;
      case S_IFREG:
        item.mode = (entry.st.st_mode & 0100) != 0 ? 0755 : 0644;
        item.source = cat(source_root_, "/", entry.path);
        break;
      case S_IFLNK: {
        char text[PATH_MAX];
        const ssize_t n = ::readlinkat(entry.parent_fd, entry.name.c_str(), text, sizeof text);
        if (n < 0) return fail_errno(errno, cat("readlink ", entry.path));
        item.type = Item::Type::kLink;
        item.content.assign(text, static_cast<size_t>(n));
        break;
      }
      default:
        return fail(Code::kInvalidArgument,
                    cat("root/", entry.path, " is neither file, directory nor link"));
    }
    if (named != recipe_.modes.end()) item.mode = named->second;
    items.push_back(std::move(item));
    return {};
  }

  std::vector<Item> items;

 private:
  const Recipe& recipe_;
  std::string source_root_;
};

bool has_item(const std::vector<Item>& items, std::string_view path) {
  return std::any_of(items.begin(), items.end(),
                     [&](const Item& item) { return item.path == path; });
}

void add_host_files(std::vector<Item>& items, const std::string& hostname) {
  if (!has_item(items, "etc")) {
    items.insert(items.begin(), Item{.path = "etc", .type = Item::Type::kDirectory, .mode = 0755});
  }
  const std::pair<const char*, std::string> files[] = {
      {"etc/hostname", hostname + "\n"},
      {"etc/hosts", hosts_file(hostname)},
      {"etc/resolv.conf", cat("nameserver ", network::kGuestNameServer, "\n")}};
  for (const auto& [path, content] : files) {
    if (!has_item(items, path)) items.push_back(Item{.path = path, .content = content});
  }
}

// The file at `path` in a layer without following any link: content of layers is not trusted.
Result<std::optional<struct stat>> find_in_layer(const std::string& layer,
                                                 const std::string& path) {
  ALCOVE_TRY_ASSIGN(UniqueFd root, image::open_directory(layer));
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  UniqueFd fd(static_cast<int>(::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how)));
  struct stat st{};
  if (!fd.valid()) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<struct stat>();
    if (errno != ELOOP) return fail_errno(errno, cat("open ", layer, "/", path));
    st.st_mode = S_IFLNK;
    return std::optional<struct stat>(st);
  }
  if (::fstat(fd.get(), &st) != 0) return fail_errno(errno, cat("stat ", path));
  return std::optional<struct stat>(st);
}

// The directory's attributes in the topmost layer that has it.
Result<std::optional<struct stat>> find_directory(const std::vector<std::string>& layers,
                                                  const std::string& path) {
  for (const std::string& layer : layers) {
    ALCOVE_TRY_ASSIGN(const auto found, find_in_layer(layer, path));
    if (!found) continue;
    const bool whiteout = S_ISCHR(found->st_mode) && found->st_rdev == 0;
    if (whiteout) break;
    if (!S_ISDIR(found->st_mode)) {
      return fail(Code::kInvalidArgument,
                  cat("root/", path, " is a directory, but /", path, " of the layers below is ",
                      S_ISLNK(found->st_mode) ? "a link: put the files at its target" : "a file"));
    }
    return found;
  }
  return std::optional<struct stat>();
}

Result<void> write_item(const Item& item, const std::string& target,
                        const std::vector<std::string>& layers) {
  struct stat wanted{};
  wanted.st_mode = item.mode;
  switch (item.type) {
    case Item::Type::kDirectory: {
      if (::mkdir(target.c_str(), 0700) != 0) return fail_errno(errno, "mkdir");
      ALCOVE_TRY_ASSIGN(const auto existing, find_directory(layers, item.path));
      if (existing && item.mode_source == Item::Mode::kDefault) wanted = *existing;
      wanted.st_mode = (wanted.st_mode & 07777) | S_IFDIR;
      break;
    }
    case Item::Type::kLink:
      wanted.st_mode = S_IFLNK;
      if (::symlink(item.content.c_str(), target.c_str()) != 0) return fail_errno(errno, "symlink");
      break;
    case Item::Type::kFile: {
      wanted.st_mode = item.mode | S_IFREG;
      ALCOVE_TRY_ASSIGN(UniqueFd to, image::open_file(target, O_WRONLY | O_CREAT | O_EXCL, 0600));
      if (item.source.empty()) {
        ALCOVE_TRY(image::write_all(to.get(), item.content));
      } else {
        ALCOVE_TRY_ASSIGN(UniqueFd from, image::open_file(item.source, O_RDONLY | O_NOFOLLOW));
        ALCOVE_TRY(image::copy_content(from.get(), to.get()));
      }
      break;
    }
  }
  // Now, not the time of the checkout.
  ::clock_gettime(CLOCK_REALTIME, &wanted.st_mtim);
  ALCOVE_TRY_ASSIGN(UniqueFd fd, image::open_file(target, O_PATH | O_NOFOLLOW));
  return image::apply_attributes(fd.get(), wanted);
}

}  // namespace

Result<FilePlan> plan_files(const Recipe& recipe, const std::string& hostname) {
  FilePlan plan;
  if (image::path_exists(recipe.root)) {
    Planner planner(recipe, recipe.root);
    ALCOVE_TRY(image::walk_tree(recipe.root, planner));
    plan.items = std::move(planner.items);
  }
  for (const auto& [path, mode] : recipe.modes) {
    if (!has_item(plan.items, path)) {
      return fail(Code::kInvalidArgument, cat("modes: there is no ", path, " in root/"));
    }
  }
  if (!hostname.empty()) add_host_files(plan.items, hostname);
  return plan;
}

Result<std::string> hash_plan(const FilePlan& plan) {
  Sha256 digest;
  for (const Item& item : plan.items) {
    std::string content = item.content;
    if (!item.source.empty()) {
      ALCOVE_TRY_ASSIGN(content, hash_file(item.source));
    }
    digest.update(cat(item.path.size(), ":", item.path, " ", static_cast<int>(item.type), " ",
                      item.mode, " ", static_cast<int>(item.mode_source), " ",
                      item.source.empty() ? "inline " : "hash ", content.size(), ":", content,
                      "\n"));
  }
  return digest.finish_hex();
}

Result<void> write_files(const FilePlan& plan, const std::string& root,
                         const std::vector<std::string>& layers) {
  for (const Item& item : plan.items) {
    if (auto written = write_item(item, cat(root, "/", item.path), layers); !written) {
      return fail(std::move(written).error().context(item.path));
    }
  }
  return {};
}

}  // namespace alcove::templates
