// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "image/plain_pool.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/defer.h"
#include "base/strings.h"
#include "image/files.h"
#include "image/pool_dirs.h"
#include "image/tree.h"

namespace alcove::image {
namespace {

std::string pool_path(const std::string& data_dir) { return data_dir + "/uppers"; }

class Adder final : public TreeVisitor {
 public:
  Result<void> enter(const TreeEntry& entry) override {
    bytes += static_cast<uint64_t>(entry.st.st_blocks) * 512;
    return {};
  }
  uint64_t bytes = 0;
};

}  // namespace

Result<std::unique_ptr<PlainPool>> PlainPool::open(const std::string& data_dir) {
  const std::string dir = pool_path(data_dir);
  ALCOVE_TRY(make_directories(dir, 0700));
  return std::unique_ptr<PlainPool>(new PlainPool(dir));
}

bool PlainPool::is_in_use(const std::string& data_dir) {
  auto ids = list_pool(pool_path(data_dir));
  return ids && !ids->empty();
}

Result<Upper> PlainPool::create(const SandboxId& id, uint64_t limit_bytes) {
  (void)limit_bytes;
  ALCOVE_TRY(check_pool_name(id));
  const std::string path = cat(dir_, "/", id.str());
  if (::mkdir(path.c_str(), 0700) != 0) return fail_errno(errno, cat("mkdir ", path));
  Rollback rollback;
  rollback.add([&] { (void)remove_tree(path); });
  ALCOVE_TRY_ASSIGN(UniqueFd fd, open_directory(path));
  ALCOVE_TRY(make_upper_dirs(fd.get()));
  rollback.release();
  return find(id);
}

Upper PlainPool::find(const SandboxId& id) const { return upper_below(dir_, id); }

Result<void> PlainPool::remove(const SandboxId& id) {
  ALCOVE_TRY(check_pool_name(id));
  return remove_tree(cat(dir_, "/", id.str()));
}

Result<std::vector<SandboxId>> PlainPool::list() const { return list_pool(dir_); }

Result<uint64_t> PlainPool::used_bytes(const SandboxId& id) const {
  ALCOVE_TRY(check_pool_name(id));
  Adder adder;
  ALCOVE_TRY(walk_tree(cat(dir_, "/", id.str()), adder));
  return adder.bytes;
}

Result<PoolSpace> PlainPool::space() const { return file_system_space(dir_); }

Result<void> PlainPool::set_limit(const SandboxId& id, uint64_t limit_bytes) {
  (void)limit_bytes;
  ALCOVE_TRY(check_pool_name(id));
  if (!path_exists(cat(dir_, "/", id.str()))) {
    return fail(Code::kNotFound, cat("sandbox ", id.str(), " has no directories"));
  }
  return {};
}

}  // namespace alcove::image
