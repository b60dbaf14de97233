// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "image/btrfs.h"

#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/hex.h"
#include "base/strings.h"
#include "sys/file_io.h"

namespace alcove::image::btrfs {
namespace {

// BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA; Debian 12's headers are older.
constexpr uint64_t kEnableSimpleQuota = 4;

Result<btrfs_ioctl_vol_args> volume_args(const std::string& name) {
  btrfs_ioctl_vol_args args{};
  if (name.size() > BTRFS_PATH_NAME_MAX) return fail_errno(ENAMETOOLONG, name);
  std::memcpy(args.name, name.data(), name.size());
  return args;
}

Result<uint64_t> subvolume_id(int fd) {
  btrfs_ioctl_ino_lookup_args args{};
  args.objectid = BTRFS_FIRST_FREE_OBJECTID;
  if (::ioctl(fd, BTRFS_IOC_INO_LOOKUP, &args) != 0) {
    return fail_errno(errno, "BTRFS_IOC_INO_LOOKUP");
  }
  return args.treeid;
}

// Of an empty subvolume; it is counted at the first commit.
constexpr uint64_t kNodeSize = 16384;

// What the quota tree says: written at each commit.
Result<uint64_t> committed_bytes(int fd, uint64_t id) {
  btrfs_ioctl_search_args search{};
  search.key.tree_id = BTRFS_QUOTA_TREE_OBJECTID;
  search.key.min_objectid = 0;
  search.key.max_objectid = 0;
  search.key.min_type = BTRFS_QGROUP_INFO_KEY;
  search.key.max_type = BTRFS_QGROUP_INFO_KEY;
  search.key.min_offset = id;
  search.key.max_offset = id;
  search.key.max_transid = UINT64_MAX;
  search.key.nr_items = 1;
  if (::ioctl(fd, BTRFS_IOC_TREE_SEARCH, &search) != 0) {
    return fail_errno(errno, "read the quota tree");
  }
  btrfs_ioctl_search_header header{};
  btrfs_qgroup_info_item info{};
  if (search.key.nr_items == 0)
    return fail(Code::kNotFound, cat("subvolume ", id, " has no quota"));
  std::memcpy(&header, search.buf, sizeof header);
  if (header.len < sizeof info) return fail(Code::kDataLoss, "malformed quota item");
  std::memcpy(&info, search.buf + sizeof header, sizeof info);
  return le64toh(info.rfer);
}

Result<uint64_t> read_number(const std::string& path) {
  ALCOVE_TRY_ASSIGN(const std::string text, sys::read_file(path));
  const auto number = parse_number<uint64_t>(trim(text));
  if (!number) return fail(Code::kDataLoss, cat(path, " has no number"));
  return *number;
}

// What the kernel counts in memory: it knows of data that is not written yet.
Result<uint64_t> current_bytes(const std::string& quota_directory, uint64_t id) {
  const std::string quota = cat(quota_directory, "/0_", id);
  ALCOVE_TRY_ASSIGN(const uint64_t referenced, read_number(quota + "/referenced"));
  ALCOVE_TRY_ASSIGN(const uint64_t pending, read_number(quota + "/rsv_data"));
  return referenced + pending;
}

}  // namespace

Result<void> enable_quotas(int fd) {
  btrfs_ioctl_quota_ctl_args args{};
  args.cmd = kEnableSimpleQuota;
  if (::ioctl(fd, BTRFS_IOC_QUOTA_CTL, &args) == 0) return {};
  if (errno != EINVAL) return fail_errno(errno, "switch simple quotas on");
  args = {};
  args.cmd = BTRFS_QUOTA_CTL_ENABLE;
  if (::ioctl(fd, BTRFS_IOC_QUOTA_CTL, &args) != 0 && errno != EEXIST) {
    return fail_errno(errno, "switch quotas on");
  }
  // Ordinary quotas count what exists first; limits hold only after that.
  if (::ioctl(fd, BTRFS_IOC_QUOTA_RESCAN_WAIT) != 0) {
    return fail_errno(errno, "wait for the quota scan");
  }
  return {};
}

Result<void> create_subvolume(int parent_fd, const std::string& name) {
  ALCOVE_TRY_ASSIGN(auto args, volume_args(name));
  if (::ioctl(parent_fd, BTRFS_IOC_SUBVOL_CREATE, &args) != 0) {
    return fail_errno(errno, cat("create subvolume ", name));
  }
  return {};
}

Result<void> delete_subvolume(int parent_fd, const std::string& name) {
  ALCOVE_TRY_ASSIGN(auto args, volume_args(name));
  if (::ioctl(parent_fd, BTRFS_IOC_SNAP_DESTROY, &args) != 0) {
    return fail_errno(errno, cat("delete subvolume ", name));
  }
  return {};
}

Result<void> set_limit(int fd, uint64_t bytes) {
  btrfs_ioctl_qgroup_limit_args args{};
  args.qgroupid = 0;  // the subvolume of fd
  args.lim.flags = BTRFS_QGROUP_LIMIT_MAX_RFER;
  args.lim.max_rfer = bytes;
  if (::ioctl(fd, BTRFS_IOC_QGROUP_LIMIT, &args) != 0) return fail_errno(errno, "set quota limit");
  return {};
}

void start_sync(int fd) { (void)::ioctl(fd, BTRFS_IOC_START_SYNC, nullptr); }

Result<std::string> quota_directory(int fd) {
  btrfs_ioctl_fs_info_args info{};
  if (::ioctl(fd, BTRFS_IOC_FS_INFO, &info) != 0) return fail_errno(errno, "BTRFS_IOC_FS_INFO");
  std::string id = to_hex({reinterpret_cast<const char*>(info.fsid), sizeof info.fsid});
  for (const size_t dash : {20, 16, 12, 8}) id.insert(dash, 1, '-');
  return cat("/sys/fs/btrfs/", id, "/qgroups");
}

Result<uint64_t> used_bytes(int fd, const std::string& quota_directory) {
  ALCOVE_TRY_ASSIGN(const uint64_t id, subvolume_id(fd));
  auto bytes = current_bytes(quota_directory, id);
  if (!bytes) bytes = committed_bytes(fd, id);
  if (!bytes) return bytes;
  return std::max(*bytes, kNodeSize);
}

}  // namespace alcove::image::btrfs
