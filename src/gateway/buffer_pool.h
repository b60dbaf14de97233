// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace alcove::gateway {

// Buffers for bodies under way, kept for the next request. Belongs to one loop.
class BufferPool {
 public:
  // What a stream that says little needs; thousands of them may be open.
  static constexpr size_t kSmall = 8 * 1024;
  // Large enough that the cost per byte is the copy, not the system call.
  static constexpr size_t kLarge = 256 * 1024;

  std::unique_ptr<char[]> take_small() { return take(small_, kSmall); }
  std::unique_ptr<char[]> take_large() { return take(large_, kLarge); }
  void give_small(std::unique_ptr<char[]> buffer) { give(small_, std::move(buffer), 64); }
  void give_large(std::unique_ptr<char[]> buffer) { give(large_, std::move(buffer), 8); }

 private:
  using Buffers = std::vector<std::unique_ptr<char[]>>;
  static std::unique_ptr<char[]> take(Buffers& free, size_t size);
  static void give(Buffers& free, std::unique_ptr<char[]> buffer, size_t keep);

  Buffers small_;
  Buffers large_;
};

// A buffer that is small until the stream shows that it is fast, and small again when it has
// become slow.
class BodyBuffer {
 public:
  explicit BodyBuffer(std::shared_ptr<BufferPool> pool);
  ~BodyBuffer();
  BodyBuffer(const BodyBuffer&) = delete;
  BodyBuffer& operator=(const BodyBuffer&) = delete;

  // For the next read. Valid until adapt().
  std::span<char> span() { return {data_.get(), size_}; }
  // Tells how much the last read brought. What it brought must have been used by now.
  void adapt(size_t read);

 private:
  void use_small();
  void use_large();

  std::shared_ptr<BufferPool> pool_;
  std::unique_ptr<char[]> data_;
  size_t size_ = 0;
  int small_reads_ = 0;
};

}  // namespace alcove::gateway
