// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "relay/carrier.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace alcove::relay {
namespace {

// Four times the default. A pipe takes memory only for what it holds: the kernel's, which nobody
// accounts to the sandbox.
constexpr size_t kPipeBytes = 256 * 1024;
constexpr size_t kMemoryBytes = 16 * 1024;

}  // namespace

Carrier::Carrier(PipePool& pool, PipeCount& own) : pool_(pool), own_(own) {
  const bool may_have_pipe = own_.used < own_.most;
  if (may_have_pipe && !pool_.idle_.empty()) {
    read_end_ = std::move(pool_.idle_.back().read_end);
    write_end_ = std::move(pool_.idle_.back().write_end);
    pool_.idle_.pop_back();
  } else if (int ends[2]; may_have_pipe && pool_.in_use_ < pool_.most_in_use_ &&
                          ::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
    read_end_.reset(ends[0]);
    write_end_.reset(ends[1]);
    (void)::fcntl(ends[1], F_SETPIPE_SZ, static_cast<int>(kPipeBytes));
  }
  if (read_end_.valid()) {
    ++pool_.in_use_;
    ++own_.used;
  } else {
    memory_ = std::make_unique<char[]>(kMemoryBytes);
  }
}

Carrier::~Carrier() {
  if (!read_end_.valid()) return;
  --pool_.in_use_;
  --own_.used;
  if (held_ == 0 && pool_.idle_.size() < PipePool::kKept) {
    pool_.idle_.push_back({std::move(read_end_), std::move(write_end_)});
  }
}

ssize_t Carrier::fill(int from) {
  ssize_t got;
  do {
    got = memory_ ? ::recv(from, memory_.get(), kMemoryBytes, MSG_DONTWAIT)
                  : ::splice(from, nullptr, write_end_.get(), nullptr, kPipeBytes,
                             SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  } while (got < 0 && errno == EINTR);
  if (got > 0) {
    held_ = static_cast<size_t>(got);
    start_ = 0;
  }
  return got;
}

ssize_t Carrier::drain(int to) {
  ssize_t put;
  do {
    put = memory_ ? ::send(to, memory_.get() + start_, held_, MSG_DONTWAIT | MSG_NOSIGNAL)
                  : ::splice(read_end_.get(), nullptr, to, nullptr, held_,
                             SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  } while (put < 0 && errno == EINTR);
  if (put > 0) {
    start_ += static_cast<size_t>(put);
    held_ -= static_cast<size_t>(put);
  }
  return put;
}

}  // namespace alcove::relay
