// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/strong_string.h"
#include "base/unique_fd.h"

namespace alcove::image {

// SHA-256 in hex of what the layer was made from.
using LayerHash = StrongString<struct LayerHashTag>;

// A layer in the making: removed with everything in it when dropped without a commit. Its lock
// tells other processes that it is in use.
class LayerStage {
 public:
  LayerStage(LayerStage&&) noexcept = default;
  LayerStage& operator=(LayerStage&&) = delete;
  ~LayerStage();

  // The directory that becomes the layer: root-owned, 0755.
  std::string root() const { return dir_ + "/root"; }
  // An empty directory on the same file system that does not.
  std::string scratch() const { return dir_ + "/scratch"; }
  // A program that inherits this descriptor keeps the stage from being swept while it lives.
  int lock_fd() const { return lock_.get(); }

 private:
  friend class LayerStore;
  LayerStage(std::string dir, UniqueFd lock) : dir_(std::move(dir)), lock_(std::move(lock)) {}

  std::string dir_;
  UniqueFd lock_;
};

// Read-only directories by hash, shared by all sandboxes. Files have ids 0..65535 on disk, so
// the directory is closed to other users of the host: layers hold setuid programs. Thread-safe,
// and safe between processes.
class LayerStore {
 public:
  // Makes the directory if need be, closes one that is open to others and removes stages that a
  // crash left behind.
  static Result<LayerStore> open(const std::string& dir);

  std::string path(const LayerHash& hash) const;
  bool has(const LayerHash& hash) const;
  Result<std::vector<LayerHash>> list() const;
  // Success if there is none.
  Result<void> remove(const LayerHash& hash) const;

  Result<LayerStage> stage() const;
  // Makes the stage's root the layer `hash`: durable and all at once. If the layer exists, the
  // stage is dropped.
  Result<void> commit(LayerStage stage, const LayerHash& hash) const;

  // Waits until no other holder, here or in another process, works on this hash. Released with
  // the descriptor.
  Result<UniqueFd> lock(const LayerHash& hash) const;

 private:
  explicit LayerStore(std::string dir) : dir_(std::move(dir)) {}
  std::string stages_dir() const { return dir_ + "/.stages"; }
  Result<UniqueFd> lock_byte(int64_t offset) const;
  Result<void> sweep_stages() const;

  std::string dir_;
};

// 64 lower-case hex digits.
bool is_layer_hash(std::string_view text);

}  // namespace alcove::image
