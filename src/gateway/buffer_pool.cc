// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/buffer_pool.h"

#include <utility>

namespace alcove::gateway {
namespace {

// So many small reads in a row and the stream counts as slow.
constexpr int kSlowAfter = 16;

}  // namespace

std::unique_ptr<char[]> BufferPool::take(Buffers& free, size_t size) {
  // Not zeroed: pages that are never filled are never touched.
  if (free.empty()) return std::unique_ptr<char[]>(new char[size]);
  std::unique_ptr<char[]> buffer = std::move(free.back());
  free.pop_back();
  return buffer;
}

void BufferPool::give(Buffers& free, std::unique_ptr<char[]> buffer, size_t keep) {
  if (free.size() < keep) free.push_back(std::move(buffer));
}

BodyBuffer::BodyBuffer(std::shared_ptr<BufferPool> pool, std::shared_ptr<Patrol> silence)
    : pool_(std::move(pool)), silence_(std::move(silence)) {
  data_ = pool_->take_small();
  size_ = BufferPool::kSmall;
}

BodyBuffer::~BodyBuffer() {
  if (size_ == BufferPool::kSmall) {
    pool_->give_small(std::move(data_));
  } else {
    pool_->give_large(std::move(data_));
  }
}

void BodyBuffer::adapt(size_t read) {
  if (size_ == BufferPool::kSmall) {
    if (read == size_) use_large();
    return;
  }
  small_reads_ = read < BufferPool::kSmall ? small_reads_ + 1 : 0;
  if (small_reads_ >= kSlowAfter) use_small();
}

bool BodyBuffer::end_large_read(const Result<size_t>& read) {
  Patrol::remove(*this);
  const bool given_up = std::exchange(canceled_, false);
  // It may have been done before it was ended, or ended by others.
  if (!given_up || read || read.error().code() != Code::kCanceled) return false;
  use_small();
  return true;
}

void BodyBuffer::still_here() {
  canceled_ = true;
  cancel_();
}

void BodyBuffer::use_large() {
  pool_->give_small(std::move(data_));
  data_ = pool_->take_large();
  size_ = BufferPool::kLarge;
  small_reads_ = 0;
}

void BodyBuffer::use_small() {
  pool_->give_large(std::move(data_));
  data_ = pool_->take_small();
  size_ = BufferPool::kSmall;
}

}  // namespace alcove::gateway
