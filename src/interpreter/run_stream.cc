// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/run_stream.h"

#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/strings.h"
#include "interpreter/result_fields.h"

namespace alcove::interpreter {
namespace {

// Lines that wait for the client; beyond this the kernel waits.
constexpr size_t kMaxWaiting = 256 * 1024;
constexpr std::chrono::seconds kKeepaliveTime{5};

// "2026-11-15T10:03:54.164979+00:00".
std::string timestamp(WallTime now) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  (void)std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::string micros = std::to_string(now.time_since_epoch().count() % 1'000'000);
  micros.insert(0, 6 - micros.size(), '0');
  return cat(std::string_view(text), ".", micros, "+00:00");
}

}  // namespace

Task<void> RunStream::emit(RunEvent event) {
  used_ = true;
  if (left_) co_return;
  std::string line = event_line(event, timestamp(SystemClock().now()));
  size_ += line.size();
  lines_.push_back(std::move(line));
  changed_.notify_all();
  while (size_ > kMaxWaiting && !left_ && !hurried_) co_await changed_.wait();
}

void RunStream::close() {
  closed_ = true;
  changed_.notify_all();
}

void RunStream::leave() {
  left_ = true;
  lines_.clear();
  size_ = 0;
  changed_.notify_all();
}

void RunStream::hurry() {
  hurried_ = true;
  changed_.notify_all();
}

Task<std::optional<std::string>> RunStream::next() {
  const auto quiet_until = std::chrono::steady_clock::now() + kKeepaliveTime;
  while (lines_.empty()) {
    if (closed_ || left_) co_return std::nullopt;
    const bool notified = co_await changed_.wait_until(quiet_until);
    if (!notified && std::chrono::steady_clock::now() >= quiet_until) co_return keepalive_line();
  }
  std::string line = std::move(lines_.front());
  lines_.pop_front();
  size_ -= line.size();
  changed_.notify_all();
  co_return line;
}

}  // namespace alcove::interpreter
