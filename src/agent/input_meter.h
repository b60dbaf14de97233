// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "base/result.h"
#include "http/body.h"
#include "net/task.h"

namespace alcove::agent {

// How much input of all calls is in memory: messages that are not complete, and data that waits for
// a process to read it. Belongs to one loop.
class InputMeter {
 public:
  static constexpr size_t kMost = 128 * 1024 * 1024;

  explicit InputMeter(size_t most = kMost) : most_(most) {}

  bool is_full() const { return held_ >= most_; }
  size_t held() const { return held_; }

 private:
  friend class MeteredBody;
  const size_t most_;
  size_t held_ = 0;
};

// A request's body whose bytes count as held until they are given back. With too much held by all
// calls together reading is refused (kResourceExhausted): to wait instead could go on for ever,
// because those who hold a part of their message may wait for each other.
class MeteredBody final : public http::BodyReader {
 public:
  MeteredBody(http::BodyReader& inner, InputMeter& meter) : inner_(inner), meter_(meter) {}
  ~MeteredBody() override { give_back(); }
  MeteredBody(const MeteredBody&) = delete;
  MeteredBody& operator=(const MeteredBody&) = delete;

  Task<Result<size_t>> read(std::span<char> buffer) override {
    if (meter_.is_full()) co_return too_much();
    ALCOVE_CO_TRY_ASSIGN(const size_t count, co_await inner_.read(buffer));
    held_ += count;
    meter_.held_ += count;
    co_return count;
  }
  std::optional<uint64_t> length() const override { return inner_.length(); }

  // What was read takes so much from now on, because it was unpacked or decoded. Refused as reading
  // is, if that is more than before.
  Result<void> hold(size_t size) {
    const size_t others = meter_.held_ - held_;
    if (size > held_ && others + size > meter_.most_) return too_much();
    meter_.held_ = others + size;
    held_ = size;
    return {};
  }
  // What was read has been used.
  void give_back() { meter_.held_ -= std::exchange(held_, 0); }

 private:
  static tl::unexpected<Error> too_much() {
    return fail(Code::kResourceExhausted, "too much input waits in the sandbox's memory");
  }

  http::BodyReader& inner_;
  InputMeter& meter_;
  size_t held_ = 0;
};

}  // namespace alcove::agent
