// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gateway/patrol.h"

namespace alcove::gateway {

// Buffers for bodies under way, kept for the next request. Belongs to one loop.
class BufferPool {
 public:
  // What a stream that says little needs; thousands of them may be open.
  static constexpr size_t kSmall = 8 * 1024;
  // Large enough that the cost per byte is the copy, not the system call.
  static constexpr size_t kLarge = 256 * 1024;

  std::unique_ptr<char[]> take_small() { return take(small_, kSmall); }
  std::unique_ptr<char[]> take_large() {
    ++large_in_use_;
    return take(large_, kLarge);
  }
  void give_small(std::unique_ptr<char[]> buffer) { give(small_, std::move(buffer), 64); }
  void give_large(std::unique_ptr<char[]> buffer) {
    --large_in_use_;
    give(large_, std::move(buffer), 8);
  }

  size_t large_in_use() const { return large_in_use_; }

 private:
  using Buffers = std::vector<std::unique_ptr<char[]>>;
  static std::unique_ptr<char[]> take(Buffers& free, size_t size);
  static void give(Buffers& free, std::unique_ptr<char[]> buffer, size_t keep);

  Buffers small_;
  Buffers large_;
  size_t large_in_use_ = 0;
};

// A buffer that is small until the stream shows that it is fast, and small again when it has
// become slow or silent.
class BodyBuffer final : private Patrolled {
 public:
  // `silence` tells who has waited in a read for long.
  BodyBuffer(std::shared_ptr<BufferPool> pool, std::shared_ptr<Patrol> silence);
  ~BodyBuffer();
  BodyBuffer(const BodyBuffer&) = delete;
  BodyBuffer& operator=(const BodyBuffer&) = delete;

  // For the next read. Valid until end_read() or adapt().
  std::span<char> span() { return {data_.get(), size_}; }
  // Around a read that may wait. `cancel` ends it with kCanceled, without a byte lost: so it is
  // ended when it waits for long with a large buffer. Then end_read() is true, the buffer is small,
  // and the read is to be begun again.
  void begin_read(std::function<void()> cancel) {
    if (size_ == BufferPool::kSmall) return;
    cancel_ = std::move(cancel);
    silence_->add(*this);
  }
  bool end_read(const Result<size_t>& read) {
    return size_ != BufferPool::kSmall && end_large_read(read);
  }
  // Tells how much the last read brought. What it brought must have been used by now.
  void adapt(size_t read);

 private:
  void use_small();
  void use_large();
  bool end_large_read(const Result<size_t>& read);
  void still_here() override;

  std::shared_ptr<BufferPool> pool_;
  std::shared_ptr<Patrol> silence_;
  std::function<void()> cancel_;
  // The read under way was ended.
  bool canceled_ = false;
  std::unique_ptr<char[]> data_;
  size_t size_ = 0;
  int small_reads_ = 0;
};

}  // namespace alcove::gateway
