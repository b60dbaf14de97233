// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace alcove::http {

// Bytes that were received and not used yet. Holds no memory while a connection is idle.
class ReadBuffer {
 public:
  std::string_view data() const { return {memory_.get() + begin_, end_ - begin_}; }
  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }

  // Takes bytes off the front.
  void consume(size_t count);
  // Room of at least one byte behind the data; grows when there is little. commit() says how much
  // of it was filled.
  std::span<char> prepare();
  void commit(size_t count) { end_ += count; }

  // Gives the memory back if there is no data.
  void release();
  // All data, moved out.
  std::string take();

 private:
  std::unique_ptr<char[]> memory_;
  size_t capacity_ = 0;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace alcove::http
