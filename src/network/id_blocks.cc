// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "network/id_blocks.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <thread>

#include "base/strings.h"
#include "sys/file_io.h"

namespace alcove::network {
namespace {

std::set<uint32_t> blocks_of_living_processes() {
  std::set<uint32_t> blocks;
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return blocks;
  while (const dirent* entry = ::readdir(proc)) {
    if (!parse_number<pid_t>(entry->d_name)) continue;
    if (const auto map = sys::read_file(cat("/proc/", entry->d_name, "/uid_map"))) {
      blocks.merge(blocks_of_map(*map));
    }
  }
  ::closedir(proc);
  return blocks;
}

}  // namespace

std::set<uint32_t> blocks_of_map(std::string_view uid_map) {
  std::set<uint32_t> blocks;
  for (const std::string_view line : split(uid_map, '\n')) {
    std::vector<uint64_t> numbers;
    for (const std::string_view field : split(line, ' ')) {
      if (const auto number = parse_number<uint64_t>(field)) numbers.push_back(*number);
    }
    if (numbers.size() != 3 || numbers[2] == 0 || numbers[2] >= UINT32_MAX) continue;
    const uint64_t first = numbers[1] / kIdsPerBlock;
    const uint64_t last = (numbers[1] + numbers[2] - 1) / kIdsPerBlock;
    for (uint64_t block = first; block <= last && block < kBlocks; ++block) {
      blocks.insert(static_cast<uint32_t>(block));
    }
  }
  return blocks;
}

Result<UniqueFd> HostIdBlocks::lock(uint32_t block) {
  std::error_code ignored;
  std::filesystem::create_directories(lock_dir_, ignored);
  const std::string path = cat(lock_dir_, "/", block);
  for (;;) {
    ALCOVE_TRY_ASSIGN(UniqueFd fd, sys::open_file(path, O_RDWR | O_CREAT, 0600));
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      return fail_errno(errno, cat("lock id block ", block));
    }
    // `./dev clean` removes unused files; a lock on a removed one keeps nobody out.
    struct stat locked{};
    struct stat named{};
    if (::fstat(fd.get(), &locked) == 0 && ::stat(path.c_str(), &named) == 0 &&
        locked.st_ino == named.st_ino && locked.st_dev == named.st_dev) {
      return fd;
    }
  }
}

Result<uint32_t> HostIdBlocks::acquire() {
  const std::lock_guard guard(mutex_);
  const std::set<uint32_t> living = blocks_of_living_processes();
  for (uint32_t block = 1; block < kBlocks; ++block) {
    if (living.contains(block) || held_.contains(block)) continue;
    auto fd = lock(block);
    if (!fd && fd.error().error_number() == EWOULDBLOCK) continue;
    if (!fd) return fail(std::move(fd).error());
    held_.emplace(block, std::move(*fd));
    return block;
  }
  return fail(Code::kResourceExhausted, "all blocks of host ids are in use");
}

Result<void> HostIdBlocks::claim(uint32_t block) {
  const std::lock_guard guard(mutex_);
  if (held_.contains(block)) return {};
  // The kernel closes the descriptors of a killed server one by one: the data directory's lock may
  // be free while this one is not yet.
  const auto deadline = std::chrono::steady_clock::now() + patience_;
  auto fd = lock(block);
  while (!fd && fd.error().error_number() == EWOULDBLOCK &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    fd = lock(block);
  }
  if (!fd) return fail(std::move(fd).error());
  held_.emplace(block, std::move(*fd));
  return {};
}

void HostIdBlocks::release(uint32_t block) {
  const std::lock_guard guard(mutex_);
  held_.erase(block);
}

}  // namespace alcove::network
