// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "http/body.h"

namespace alcove::agent::testing {

// A body in memory that arrives in pieces of `step` bytes.
class MemoryBody final : public http::BodyReader {
 public:
  MemoryBody(std::string content, size_t step) : content_(std::move(content)), step_(step) {}
  Task<Result<size_t>> read(std::span<char> buffer) override {
    const size_t count = std::min({buffer.size(), step_, content_.size() - at_});
    std::copy_n(content_.data() + at_, count, buffer.data());
    at_ += count;
    co_return count;
  }
  std::optional<uint64_t> length() const override { return content_.size(); }

 private:
  std::string content_;
  size_t step_;
  size_t at_ = 0;
};

}  // namespace alcove::agent::testing
