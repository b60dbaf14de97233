// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "image/btrfs_pool.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/defer.h"
#include "base/strings.h"
#include "image/btrfs.h"
#include "image/files.h"
#include "image/loop_device.h"
#include "image/pool_dirs.h"
#include "image/run_program.h"

namespace alcove::image {
namespace {

constexpr uint64_t kMaxDefaultSize = 100ull << 30;
// mkfs.btrfs refuses less than about 110 MiB; below this a pool makes no sense.
constexpr uint64_t kMinSize = 256ull << 20;
constexpr int kDefaultPercent = 40;
// Less free space than this part of the pool is scarce.
constexpr uint64_t kScarceDivisor = 10;

std::string image_path(const std::string& data_dir) { return data_dir + "/pool.img"; }
std::string mount_path(const std::string& data_dir) { return data_dir + "/pool"; }

Result<bool> is_mount_point(const std::string& path) {
  struct statx st{};
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &st) != 0) {
    if (errno == ENOENT) return false;
    return fail_errno(errno, cat("stat ", path));
  }
  return (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

Result<uint64_t> default_size(const std::string& data_dir) {
  struct statvfs fs{};
  if (::statvfs(data_dir.c_str(), &fs) != 0) return fail_errno(errno, cat("statvfs ", data_dir));
  const uint64_t free = static_cast<uint64_t>(fs.f_bavail) * fs.f_frsize;
  return std::min(free / 100 * kDefaultPercent, kMaxDefaultSize);
}

// Errors that say "this machine has no such thing", as opposed to "it failed".
Error unsupported(Error error) {
  return Error(Code::kUnimplemented, std::move(error).context("btrfs pool").message());
}

Result<void> make_image(const UpperPool::Options& options) {
  uint64_t size = options.pool_size_bytes;
  if (size == 0) {
    ALCOVE_TRY_ASSIGN(size, default_size(options.data_dir));
  }
  if (size < kMinSize) {
    return fail(Code::kResourceExhausted,
                cat("a disk pool of ", size >> 20, " MiB is too small (at least ", kMinSize >> 20,
                    "): free some space or set --pool-size"));
  }
  const std::string temporary = image_path(options.data_dir) + ".new";
  Rollback rollback;
  rollback.add([&] { ::unlink(temporary.c_str()); });
  ALCOVE_TRY_ASSIGN(UniqueFd fd, open_file(temporary, O_RDWR | O_CREAT | O_TRUNC, 0600));
  if (::fallocate(fd.get(), 0, 0, static_cast<off_t>(size)) != 0) {
    return fail_errno(errno, cat("reserve ", size >> 20, " MiB for the disk pool in ", temporary));
  }
  auto made = run_program(
      {.argv = {"mkfs.btrfs", "-q", "-f", "-K", "-m", "single", "-d", "single", temporary}});
  if (!made) {
    Error error = std::move(made).error();
    if (error.error_number() == ENOENT) return fail(unsupported(std::move(error)));
    return fail(std::move(error));
  }
  if (::fsync(fd.get()) != 0) return fail_errno(errno, cat("fsync ", temporary));
  if (::rename(temporary.c_str(), image_path(options.data_dir).c_str()) != 0) {
    return fail_errno(errno, cat("rename ", temporary));
  }
  rollback.release();
  return fsync_directory(options.data_dir);
}

Result<void> mount_image(const std::string& data_dir) {
  const std::string target = mount_path(data_dir);
  auto loop = LoopDevice::attach(image_path(data_dir));
  if (!loop) return fail(unsupported(std::move(loop).error()));
  // nodiscard: deleted data must stay reserved on the host. nosuid and nodev only matter for
  // host users; sandboxes see the overlay's own flags.
  if (::mount(loop->path().c_str(), target.c_str(), "btrfs", MS_NOATIME | MS_NOSUID | MS_NODEV,
              "nodiscard,ssd") != 0) {
    Error error = Error::from_errno(errno, cat("mount ", loop->path(), " on ", target));
    if (error.error_number() == ENODEV) return fail(unsupported(std::move(error)));
    return fail(std::move(error));
  }
  return {};
}

// Server and tools may open the pool at the same time; one of them mounts it.
Result<UniqueFd> lock_pool(const std::string& data_dir) {
  ALCOVE_TRY_ASSIGN(UniqueFd fd, open_file(data_dir + "/pool.lock", O_RDWR | O_CREAT, 0600));
  ALCOVE_TRY(lock_file_byte(fd.get(), 0, LockMode::kWait));
  return fd;
}

Result<void> ensure_mounted(const UpperPool::Options& options) {
  ALCOVE_TRY_ASSIGN(UniqueFd lock, lock_pool(options.data_dir));
  const std::string target = mount_path(options.data_dir);
  ALCOVE_TRY(make_directories(target, 0700));
  ALCOVE_TRY_ASSIGN(const bool mounted, is_mount_point(target));
  if (!mounted) {
    const bool existed = path_exists(image_path(options.data_dir));
    if (!existed) ALCOVE_TRY(make_image(options));
    if (auto done = mount_image(options.data_dir); !done) {
      if (!existed) {
        ::unlink(image_path(options.data_dir).c_str());
        ::rmdir(target.c_str());
        return fail(std::move(done).error());
      }
      // Sandboxes live in it: this is a failure and no reason to use something else.
      return fail(Code::kFailedPrecondition, std::move(done).error().message());
    }
  }
  ALCOVE_TRY_ASSIGN(UniqueFd root, open_directory(target));
  struct statfs fs{};
  if (::fstatfs(root.get(), &fs) != 0) return fail_errno(errno, cat("statfs ", target));
  if (fs.f_type != BTRFS_SUPER_MAGIC) {
    return fail(Code::kFailedPrecondition, cat(target, " has something mounted that is not btrfs"));
  }
  // Only when it is needed: a full pool has no room to write down a mode.
  struct stat st{};
  if (::fstat(root.get(), &st) != 0) return fail_errno(errno, cat("stat ", target));
  if ((st.st_mode & 07777) != 0700 && ::fchmod(root.get(), 0700) != 0) {
    return fail_errno(errno, cat("chmod ", target));
  }
  return btrfs::enable_quotas(root.get());
}

}  // namespace

Result<std::unique_ptr<BtrfsPool>> BtrfsPool::open(const Options& options) {
  ALCOVE_TRY(ensure_mounted(options));
  const std::string dir = mount_path(options.data_dir);
  ALCOVE_TRY_ASSIGN(UniqueFd root, open_directory(dir));
  ALCOVE_TRY_ASSIGN(std::string quota_dir, btrfs::quota_directory(root.get()));
  return std::unique_ptr<BtrfsPool>(new BtrfsPool(dir, std::move(root), std::move(quota_dir)));
}

Result<Upper> BtrfsPool::create(const SandboxId& id, uint64_t limit_bytes) {
  ALCOVE_TRY(check_pool_name(id));
  ALCOVE_TRY(btrfs::create_subvolume(root_.get(), id.str()));
  Rollback rollback;
  rollback.add([&] { (void)btrfs::delete_subvolume(root_.get(), id.str()); });
  ALCOVE_TRY_ASSIGN(UniqueFd subvolume, open_subvolume(id));
  ALCOVE_TRY(btrfs::set_limit(subvolume.get(), limit_bytes));
  ALCOVE_TRY(make_upper_dirs(subvolume.get()));
  rollback.release();
  return find(id);
}

Upper BtrfsPool::find(const SandboxId& id) const { return upper_below(dir_, id); }

Result<void> BtrfsPool::remove(const SandboxId& id) {
  ALCOVE_TRY(check_pool_name(id));
  auto removed = btrfs::delete_subvolume(root_.get(), id.str());
  if (!removed && removed.error().error_number() != ENOENT) return removed;
  return {};
}

Result<std::vector<SandboxId>> BtrfsPool::list() const { return list_pool(dir_); }

Result<uint64_t> BtrfsPool::used_bytes(const SandboxId& id) const {
  ALCOVE_TRY_ASSIGN(UniqueFd subvolume, open_subvolume(id));
  return btrfs::used_bytes(subvolume.get(), quota_dir_);
}

Result<PoolSpace> BtrfsPool::space() const {
  ALCOVE_TRY_ASSIGN(const PoolSpace space, file_system_space(dir_));
  // By itself the kernel gives deleted space back every 30 seconds.
  if (space.free_bytes < space.total_bytes / kScarceDivisor) btrfs::start_sync(root_.get());
  return space;
}

Result<void> BtrfsPool::set_limit(const SandboxId& id, uint64_t limit_bytes) {
  ALCOVE_TRY_ASSIGN(UniqueFd subvolume, open_subvolume(id));
  return btrfs::set_limit(subvolume.get(), limit_bytes);
}

Result<UniqueFd> BtrfsPool::open_subvolume(const SandboxId& id) const {
  ALCOVE_TRY(check_pool_name(id));
  return open_file_at(root_.get(), id.str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

Result<void> unmount_pool(const std::string& data_dir) {
  if (!path_exists(data_dir)) return {};
  ALCOVE_TRY_ASSIGN(UniqueFd lock, lock_pool(data_dir));
  const std::string target = mount_path(data_dir);
  ALCOVE_TRY_ASSIGN(const bool mounted, is_mount_point(target));
  if (mounted && ::umount2(target.c_str(), UMOUNT_NOFOLLOW) != 0) {
    return fail_errno(errno, cat("unmount ", target));
  }
  return {};
}

}  // namespace alcove::image
