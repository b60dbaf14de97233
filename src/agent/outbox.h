// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/any_io_executor.hpp>

#include "base/result.h"
#include "connect/connect.h"
#include "http/exchange.h"
#include "net/notifier.h"
#include "net/task.h"

namespace alcove::agent {

// What waits to be sent on one event stream. Whoever makes the events adds to it, the stream takes
// away. Belongs to one loop.
struct Outbox {
  Outbox(const boost::asio::any_io_executor& executor, connect::Codec used)
      : codec(used), wake(executor) {}
  ~Outbox() { total_ -= counted_; }
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // With this much waiting for the client nothing is added.
  static constexpr size_t kMaxPending = 256 * 1024;
  // With this much in all outboxes, one that has anything takes nothing more: many slow clients
  // hold up what they listen to instead of filling the memory.
  static constexpr size_t kMaxTotal = 32 * 1024 * 1024;
  // Capacity that a buffer has while there is nothing in it.
  static constexpr size_t kMostKept = 32 * 1024;

  bool has_room() const {
    return pending.empty() || (pending.size() < kMaxPending && total_ < kMaxTotal);
  }
  // Something was added to `pending`.
  void added() {
    recount();
    wake.notify_all();
  }
  // All that is pending, which counts until it was sent.
  void take(std::string& batch) {
    batch.clear();
    std::swap(batch, pending);
    sending_ = batch.size();
  }
  void sent() {
    sending_ = 0;
    recount();
  }
  // Whether more memory is kept than a quiet stream should: there may be thousands of them.
  bool keeps_much(const std::string& batch) const {
    return batch.capacity() > kMostKept || pending.capacity() > kMostKept;
  }
  // Gives it back. Not after each batch: a stream that is busy would get it anew all the time.
  void release(std::string& batch) {
    batch.clear();
    for (std::string* buffer : {&batch, &pending}) {
      if (buffer->empty() && buffer->capacity() > kMostKept) buffer->shrink_to_fit();
    }
  }
  // Bytes in all outboxes of the program.
  static size_t total() { return total_; }

  // Nothing follows what is pending.
  void close(std::optional<Error> with = {}) {
    over = true;
    failure = std::move(with);
    wake.notify_all();
  }

  const connect::Codec codec;
  // Framed events.
  std::string pending;
  bool over = false;
  // Why it is over; nothing for an orderly end.
  std::optional<Error> failure;
  // The client is gone.
  bool disconnected = false;
  // Notified when any of the above changes.
  net::Notifier wake;

 private:
  void recount() {
    total_ -= counted_;
    counted_ = pending.size() + sending_;
    total_ += counted_;
  }

  // The program has one loop with outboxes.
  inline static size_t total_ = 0;
  size_t counted_ = 0;
  size_t sending_ = 0;
};

struct OutboxOptions {
  // Appends a framed keepalive event.
  void (*append_keepalive)(connect::Codec codec, std::string& out) = nullptr;
  // Called when what was pending was taken: there is room again.
  std::function<void()> taken;
};

// Answers a streaming call with what is put into the outbox, at once and as long as it is not over,
// the call's deadline has not passed and the client is there; keepalives in between. Events and
// end-of-stream that are there together go out in one packet.
Task<void> send_outbox(http::Exchange& exchange, connect::CallInfo call,
                       std::shared_ptr<Outbox> outbox, OutboxOptions options);

}  // namespace alcove::agent
