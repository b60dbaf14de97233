// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "http/read_buffer.h"

#include <cstring>

namespace alcove::http {
namespace {

constexpr size_t kFirstCapacity = 4096;
// prepare() grows the buffer when less than this is free.
constexpr size_t kLeastRoom = 1024;

}  // namespace

void ReadBuffer::consume(size_t count) {
  begin_ += count;
  if (begin_ == end_) begin_ = end_ = 0;
}

std::span<char> ReadBuffer::prepare() {
  if (capacity_ - end_ < kLeastRoom) {
    const size_t used = size();
    if (begin_ > 0 && capacity_ - used >= kLeastRoom) {
      std::memmove(memory_.get(), memory_.get() + begin_, used);
    } else {
      const size_t capacity = capacity_ == 0 ? kFirstCapacity : capacity_ * 2;
      auto memory = std::make_unique_for_overwrite<char[]>(capacity);
      if (used > 0) std::memcpy(memory.get(), memory_.get() + begin_, used);
      memory_ = std::move(memory);
      capacity_ = capacity;
    }
    begin_ = 0;
    end_ = used;
  }
  return {memory_.get() + end_, capacity_ - end_};
}

void ReadBuffer::release() {
  if (!empty()) return;
  memory_.reset();
  capacity_ = begin_ = end_ = 0;
}

std::string ReadBuffer::take() {
  std::string all(data());
  begin_ = end_ = 0;
  release();
  return all;
}

}  // namespace alcove::http
