// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "base/unique_fd.h"

namespace alcove::relay {

class PipePool;

// How many pipes a sandbox has, and how many it may have.
struct PipeCount {
  size_t used = 0;
  size_t most = 0;
};

// Holds bytes on their way from one socket to another: in a pipe, where the kernel moves pages
// (splice), or in memory when pipes have run out. Needed only while data is in flight, so that an
// idle connection has two descriptors.
class Carrier {
 public:
  // Both outlive it.
  Carrier(PipePool& pool, PipeCount& own);
  // A pipe that is empty goes back to the pool.
  ~Carrier();
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  // Takes what `from` has, when empty. As read(2): 0 at the end, -1 with errno.
  ssize_t fill(int from);
  // Gives `to` as much as it takes. -1 with errno.
  ssize_t drain(int to);
  bool empty() const { return held_ == 0; }

 private:
  PipePool& pool_;
  PipeCount& own_;
  UniqueFd read_end_;
  UniqueFd write_end_;
  std::unique_ptr<char[]> memory_;
  size_t start_ = 0;
  size_t held_ = 0;
};

// Keeps a few pipes for the next carrier and bounds how many there are. Of one thread.
class PipePool {
 public:
  explicit PipePool(size_t most_in_use) : most_in_use_(most_in_use) {}

 private:
  friend class Carrier;
  static constexpr size_t kKept = 32;
  struct Pipe {
    UniqueFd read_end;
    UniqueFd write_end;
  };

  const size_t most_in_use_;
  size_t in_use_ = 0;
  std::vector<Pipe> idle_;
};

}  // namespace alcove::relay
