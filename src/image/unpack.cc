// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "image/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "base/strings.h"
#include "image/file_copy.h"
#include "image/files.h"
#include "image/xattrs.h"

namespace alcove::image {
namespace {

using ArchivePtr = std::unique_ptr<archive, int (*)(archive*)>;

Error archive_error(archive* from, const std::string& what) {
  const char* text = ::archive_error_string(from);
  return Error(Code::kInvalidArgument, cat(what, ": ", text != nullptr ? text : "damaged archive"));
}

// libarchive gives no name in the locale's encoding if the process has no UTF-8 locale.
const char* first_of(const char* native, const char* utf8) {
  return native != nullptr ? native : utf8;
}

// "./a//b/" -> {"a", "b"}; an error for what could leave the target.
Result<std::vector<std::string>> split_name(std::string_view name) {
  if (name.starts_with('/')) return fail(Code::kInvalidArgument, cat("absolute name ", name));
  std::vector<std::string> parts;
  for (std::string_view part : split(name, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") return fail(Code::kInvalidArgument, cat("\"..\" in name ", name));
    parts.emplace_back(part);
  }
  return parts;
}

// RESOLVE_IN_ROOT: absolute links and ".." in link texts stay below the target.
Result<UniqueFd> open_in_root(int root_fd, const std::string& path, uint64_t flags) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  while (true) {
    const long fd = ::syscall(SYS_openat2, root_fd, path.c_str(), &how, sizeof how);
    if (fd >= 0) return UniqueFd(static_cast<int>(fd));
    if (errno != EINTR && errno != EAGAIN) return fail_errno(errno, cat("open ", path));
  }
}

class Unpacker {
 public:
  Unpacker(archive* source, UniqueFd root, const UnpackLimits& limits, const Notice& notice)
      : source_(source), root_(std::move(root)), limits_(limits), notice_(notice) {}

  Result<void> run() {
    uint64_t entries = 0;
    while (true) {
      archive_entry* entry = nullptr;
      const int status = ::archive_read_next_header(source_, &entry);
      if (status == ARCHIVE_EOF) break;
      if (status < ARCHIVE_WARN) return fail(archive_error(source_, "read archive"));
      if (++entries > limits_.max_entries) {
        return fail(Code::kResourceExhausted,
                    cat("the archive has more than ", limits_.max_entries, " entries"));
      }
      const char* name =
          first_of(::archive_entry_pathname(entry), ::archive_entry_pathname_utf8(entry));
      if (name == nullptr) return fail(Code::kInvalidArgument, "an entry without a name");
      if (auto done = unpack_entry(name, entry); !done) {
        return fail(std::move(done).error().context(name));
      }
    }
    return set_directory_times();
  }

 private:
  struct Place {
    UniqueFd parent;
    std::string name;
  };
  struct DirectoryTime {
    std::string path;
    timespec time;
  };

  // Opens the directory that holds the last part, making missing ones on the way.
  Result<Place> find_place(const std::vector<std::string>& parts) {
    std::string parent_path = ".";
    ALCOVE_TRY_ASSIGN(UniqueFd parent, open_in_root(root_.get(), ".", O_PATH | O_DIRECTORY));
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      parent_path += '/';
      parent_path += parts[i];
      auto next = open_in_root(root_.get(), parent_path, O_PATH | O_DIRECTORY);
      if (!next && next.error().error_number() == ENOENT) {
        if (::mkdirat(parent.get(), parts[i].c_str(), 0755) != 0) {
          return fail_errno(errno, cat("mkdir ", parent_path));
        }
        next = open_in_root(root_.get(), parent_path, O_PATH | O_DIRECTORY);
      }
      if (!next) return fail(std::move(next).error());
      parent = std::move(*next);
    }
    return Place{.parent = std::move(parent), .name = parts.back()};
  }

  static struct stat wanted_attributes(archive_entry* entry, mode_t type) {
    struct stat st{};
    st.st_mode = type | (::archive_entry_perm(entry) & 07777);
    st.st_uid = static_cast<uid_t>(::archive_entry_uid(entry));
    st.st_gid = static_cast<gid_t>(::archive_entry_gid(entry));
    st.st_mtim = {.tv_sec = ::archive_entry_mtime(entry),
                  .tv_nsec = ::archive_entry_mtime_nsec(entry)};
    return st;
  }

  Result<void> unpack_entry(const char* name, archive_entry* entry) {
    ALCOVE_TRY_ASSIGN(const auto parts, split_name(name));
    const mode_t type = ::archive_entry_filetype(entry);
    const int64_t uid = ::archive_entry_uid(entry);
    const int64_t gid = ::archive_entry_gid(entry);
    if (uid < 0 || uid >= kIdsPerLayer || gid < 0 || gid >= kIdsPerLayer) {
      return fail(Code::kInvalidArgument, cat("owner ", uid, ":", gid, " is beyond 65535"));
    }
    if (parts.empty()) {
      if (type != AE_IFDIR) return fail(Code::kInvalidArgument, "the root is not a directory");
      return set_attributes(root_.get(), entry, S_IFDIR);
    }
    ALCOVE_TRY_ASSIGN(const Place place, find_place(parts));
    if (const char* target =
            first_of(::archive_entry_hardlink(entry), ::archive_entry_hardlink_utf8(entry))) {
      return make_link(place, target);
    }
    switch (type) {
      case AE_IFDIR:
        return make_directory(place, entry, parts);
      case AE_IFREG:
        return make_regular(place, entry);
      case AE_IFLNK:
        return make_symlink(place, entry);
      case AE_IFIFO:
        ALCOVE_TRY(make_room(place));
        if (::mkfifoat(place.parent.get(), place.name.c_str(), 0600) != 0) {
          return fail_errno(errno, "mkfifo");
        }
        return set_leaf_attributes(place, entry, S_IFIFO);
      default:
        if (notice_) notice_(cat("left out device node or socket ", name));
        return {};
    }
  }

  // Removes what an earlier entry put at this name. A directory must be empty.
  static Result<void> make_room(const Place& place) {
    if (::unlinkat(place.parent.get(), place.name.c_str(), 0) == 0 || errno == ENOENT) return {};
    if (errno == EISDIR && ::unlinkat(place.parent.get(), place.name.c_str(), AT_REMOVEDIR) == 0) {
      return {};
    }
    return fail_errno(errno, "replace an earlier entry");
  }

  Result<void> make_directory(const Place& place, archive_entry* entry,
                              const std::vector<std::string>& parts) {
    struct stat st{};
    const bool there =
        ::fstatat(place.parent.get(), place.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (!there || !S_ISDIR(st.st_mode)) {
      if (there) ALCOVE_TRY(make_room(place));
      if (::mkdirat(place.parent.get(), place.name.c_str(), 0700) != 0) {
        return fail_errno(errno, "mkdir");
      }
    }
    directory_times_.push_back({.path = join(parts, "/"),
                                .time = {.tv_sec = ::archive_entry_mtime(entry),
                                         .tv_nsec = ::archive_entry_mtime_nsec(entry)}});
    return set_leaf_attributes(place, entry, S_IFDIR);
  }

  Result<void> make_regular(const Place& place, archive_entry* entry) {
    ALCOVE_TRY(make_room(place));
    ALCOVE_TRY_ASSIGN(UniqueFd fd, open_file_at(place.parent.get(), place.name,
                                                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
    int64_t end = 0;
    while (true) {
      const void* data = nullptr;
      size_t size = 0;
      int64_t offset = 0;
      const int status = ::archive_read_data_block(source_, &data, &size, &offset);
      if (status == ARCHIVE_EOF) break;
      if (status < ARCHIVE_WARN) return fail(archive_error(source_, "read content"));
      if (offset < end) return fail(Code::kInvalidArgument, "content out of order");
      bytes_ += size;
      if (bytes_ > limits_.max_bytes) return fail(too_large());
      if (offset != end && ::lseek(fd.get(), offset, SEEK_SET) < 0) {
        return fail_errno(errno, "lseek");
      }
      ALCOVE_TRY(write_all(fd.get(), std::string_view(static_cast<const char*>(data), size)));
      end = offset + static_cast<int64_t>(size);
    }
    // A sparse file may end in a hole.
    const int64_t size = ::archive_entry_size(entry);
    if (size > 0 && static_cast<uint64_t>(size) > limits_.max_bytes) return fail(too_large());
    if (size > end && ::ftruncate(fd.get(), size) != 0) return fail_errno(errno, "ftruncate");
    return set_leaf_attributes(place, entry, S_IFREG);
  }

  Error too_large() const {
    return Error(Code::kResourceExhausted,
                 cat("the archive's content is larger than ", limits_.max_bytes, " bytes"));
  }

  Result<void> make_symlink(const Place& place, archive_entry* entry) {
    const char* text =
        first_of(::archive_entry_symlink(entry), ::archive_entry_symlink_utf8(entry));
    if (text == nullptr) return fail(Code::kInvalidArgument, "a symbolic link without a target");
    ALCOVE_TRY(make_room(place));
    if (::symlinkat(text, place.parent.get(), place.name.c_str()) != 0) {
      return fail_errno(errno, "symlink");
    }
    return set_leaf_attributes(place, entry, S_IFLNK);
  }

  Result<void> make_link(const Place& place, const char* target) {
    ALCOVE_TRY_ASSIGN(const auto parts, split_name(target));
    if (parts.empty()) return fail(Code::kInvalidArgument, "a hard link to the root");
    ALCOVE_TRY_ASSIGN(const Place existing, find_place(parts));
    struct stat st{};
    if (::fstatat(existing.parent.get(), existing.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
      return fail_errno(errno, cat("hard link to ", target));
    }
    struct stat own{};
    if (::fstatat(place.parent.get(), place.name.c_str(), &own, AT_SYMLINK_NOFOLLOW) == 0 &&
        own.st_ino == st.st_ino) {
      return {};
    }
    ALCOVE_TRY(make_room(place));
    // Without AT_SYMLINK_FOLLOW the link is to the name itself, never to what it points at.
    if (::linkat(existing.parent.get(), existing.name.c_str(), place.parent.get(),
                 place.name.c_str(), 0) != 0) {
      return fail_errno(errno, cat("hard link to ", target));
    }
    return {};
  }

  Result<void> set_leaf_attributes(const Place& place, archive_entry* entry, mode_t type) {
    ALCOVE_TRY_ASSIGN(UniqueFd fd,
                      open_file_at(place.parent.get(), place.name, O_PATH | O_NOFOLLOW));
    return set_attributes(fd.get(), entry, type);
  }

  static Result<void> set_attributes(int fd, archive_entry* entry, mode_t type) {
    ALCOVE_TRY(apply_attributes(fd, wanted_attributes(entry, type)));
    if (type != S_IFREG && type != S_IFDIR) return {};
    ::archive_entry_xattr_reset(entry);
    const char* name = nullptr;
    const void* value = nullptr;
    size_t size = 0;
    while (::archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK) {
      if (name == nullptr || !is_allowed_in_layer(name)) continue;
      Xattr attribute{.name = name, .value = std::string(static_cast<const char*>(value), size)};
      if (attribute.name == kCapabilityXattr) {
        auto converted = capability_for_layer(attribute.value);
        if (!converted) continue;
        attribute.value = std::move(*converted);
      }
      ALCOVE_TRY(write_xattr(fd, attribute));
    }
    return {};
  }

  // Last, because unpacking into a directory changes its time. Later entries may have replaced
  // a directory; then there is nothing to set.
  Result<void> set_directory_times() {
    for (const DirectoryTime& directory : directory_times_) {
      auto fd = open_in_root(root_.get(), directory.path, O_PATH | O_DIRECTORY | O_NOFOLLOW);
      if (!fd) continue;
      const timespec times[2] = {directory.time, directory.time};
      if (::utimensat(fd->get(), "", times, AT_EMPTY_PATH) != 0) {
        return fail_errno(errno, cat("utimensat ", directory.path));
      }
    }
    return {};
  }

  archive* source_;
  UniqueFd root_;
  const UnpackLimits& limits_;
  const Notice& notice_;
  uint64_t bytes_ = 0;
  std::vector<DirectoryTime> directory_times_;
};

}  // namespace

Result<void> unpack_tar(const std::string& tar_path, const std::string& target,
                        const UnpackLimits& limits, const Notice& notice) {
  ALCOVE_TRY_ASSIGN(UniqueFd root, open_directory(target));
  ALCOVE_TRY_ASSIGN(UniqueFd file, open_file(tar_path, O_RDONLY));
  ArchivePtr source(::archive_read_new(), ::archive_read_free);
  ::archive_read_support_filter_gzip(source.get());
  ::archive_read_support_filter_bzip2(source.get());
  ::archive_read_support_filter_xz(source.get());
  ::archive_read_support_filter_zstd(source.get());
  ::archive_read_support_format_tar(source.get());
  if (::archive_read_open_fd(source.get(), file.get(), 65536) != ARCHIVE_OK) {
    return fail(archive_error(source.get(), cat("open ", tar_path)));
  }
  Unpacker unpacker(source.get(), std::move(root), limits, notice);
  if (auto done = unpacker.run(); !done) {
    return fail(std::move(done).error().context(tar_path));
  }
  return {};
}

}  // namespace alcove::image
