// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "image/layer_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/defer.h"
#include "base/ids.h"
#include "base/strings.h"
#include "image/files.h"
#include "image/tree.h"

namespace alcove::image {
namespace {

// Byte 0 of the lock file guards the stages; a hash has the byte at its first 60 bits.
constexpr int64_t kStagesByte = 0;
// Beside the stage's directory, so that it is there as long as the directory is.
constexpr std::string_view kLockSuffix = ".lock";

int64_t lock_offset(const LayerHash& hash) {
  uint64_t value = 0;
  const std::string& text = hash.str();
  std::from_chars(text.data(), text.data() + std::min<size_t>(text.size(), 15), value, 16);
  return static_cast<int64_t>(value) + 1;
}

std::string lock_path(const std::string& stage_dir) { return cat(stage_dir, kLockSuffix); }

Result<void> sync_file_system(const std::string& path) {
  ALCOVE_TRY_ASSIGN(UniqueFd fd, open_directory(path));
  if (::syncfs(fd.get()) != 0) return fail_errno(errno, cat("syncfs ", path));
  return {};
}

// Also one that is there: older versions made it open to everybody.
Result<void> make_closed_directory(const std::string& path) {
  ALCOVE_TRY(make_directories(path, 0700));
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0) return fail_errno(errno, cat("stat ", path));
  if ((st.st_mode & 07777) != 0700 && ::chmod(path.c_str(), 0700) != 0) {
    return fail_errno(errno, cat("chmod ", path));
  }
  return {};
}

}  // namespace

bool is_layer_hash(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

LayerStage::~LayerStage() {
  if (!lock_.valid()) return;
  (void)remove_tree(dir_);
  // Last: a directory without its lock file has no owner.
  ::unlink(lock_path(dir_).c_str());
}

Result<LayerStore> LayerStore::open(const std::string& dir) {
  ALCOVE_TRY(make_closed_directory(dir));
  LayerStore store(dir);
  ALCOVE_TRY(make_directories(store.stages_dir(), 0700));
  ALCOVE_TRY(store.sweep_stages());
  return store;
}

std::string LayerStore::path(const LayerHash& hash) const { return cat(dir_, "/", hash.str()); }

bool LayerStore::has(const LayerHash& hash) const {
  return is_layer_hash(hash.str()) && path_exists(path(hash));
}

Result<std::vector<LayerHash>> LayerStore::list() const {
  ALCOVE_TRY_ASSIGN(auto names, list_directory(dir_));
  std::vector<LayerHash> hashes;
  for (std::string& name : names) {
    if (is_layer_hash(name)) hashes.emplace_back(std::move(name));
  }
  return hashes;
}

Result<void> LayerStore::remove(const LayerHash& hash) const {
  // Moved away first: a half-deleted layer must not be found under its hash.
  ALCOVE_TRY_ASSIGN(LayerStage trash, stage());
  const std::string target = cat(trash.scratch(), "/", hash.str());
  if (::rename(path(hash).c_str(), target.c_str()) != 0 && errno != ENOENT) {
    return fail_errno(errno, cat("remove layer ", hash.str()));
  }
  return remove_tree(target);
}

Result<LayerStage> LayerStore::stage() const {
  ALCOVE_TRY_ASSIGN(UniqueFd guard, lock_byte(kStagesByte));
  const std::string dir = cat(stages_dir(), "/", random_hex(8));
  ALCOVE_TRY_ASSIGN(UniqueFd lock, open_file(lock_path(dir), O_RDWR | O_CREAT | O_EXCL, 0600));
  ALCOVE_TRY(lock_file_byte(lock.get(), 0, LockMode::kTry));
  LayerStage result(dir, std::move(lock));
  ALCOVE_TRY(make_directories(result.root(), 0755));
  ALCOVE_TRY(make_directories(result.scratch(), 0700));
  return result;
}

Result<void> LayerStore::commit(LayerStage stage, const LayerHash& hash) const {
  if (!is_layer_hash(hash.str())) {
    return fail(Code::kInvalidArgument, cat("not a layer hash: ", hash.str()));
  }
  if (has(hash)) return {};
  ALCOVE_TRY(sync_file_system(stage.root()));
  if (::rename(stage.root().c_str(), path(hash).c_str()) != 0) {
    if (errno == EEXIST || errno == ENOTEMPTY) return {};
    return fail_errno(errno, cat("commit layer ", hash.str()));
  }
  return fsync_directory(dir_);
}

Result<UniqueFd> LayerStore::lock(const LayerHash& hash) const {
  return lock_byte(lock_offset(hash));
}

Result<UniqueFd> LayerStore::lock_byte(int64_t offset) const {
  ALCOVE_TRY_ASSIGN(UniqueFd fd, open_file(cat(dir_, "/.lock"), O_RDWR | O_CREAT, 0600));
  ALCOVE_TRY(lock_file_byte(fd.get(), offset, LockMode::kWait));
  return fd;
}

Result<void> LayerStore::sweep_stages() const {
  ALCOVE_TRY_ASSIGN(UniqueFd guard, lock_byte(kStagesByte));
  ALCOVE_TRY_ASSIGN(auto names, list_directory(stages_dir()));
  for (std::string_view name : names) {
    if (name.ends_with(kLockSuffix)) name.remove_suffix(kLockSuffix.size());
    const std::string path = cat(stages_dir(), "/", name);
    auto lock = open_file(lock_path(path), O_RDWR);
    if (lock && !lock_file_byte(lock->get(), 0, LockMode::kTry)) continue;
    ALCOVE_TRY(remove_tree(path));
    ::unlink(lock_path(path).c_str());
  }
  return {};
}

}  // namespace alcove::image
