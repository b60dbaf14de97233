// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <list>
#include <memory>

#include "net/fd_wait.h"

namespace alcove::net {

// The handshakes under way on one loop. Each holds about 50 KiB, and clients that begin them and
// say no more cost nothing themselves: beyond a number, the oldest is given up. An honest client is
// done within milliseconds. Used on its loop only.
class TlsHandshakes {
 public:
  static constexpr size_t kMost = 1024;

  explicit TlsHandshakes(size_t most = kMost) : most_(most) {}
  TlsHandshakes(const TlsHandshakes&) = delete;
  TlsHandshakes& operator=(const TlsHandshakes&) = delete;

  size_t size() const { return list_.size(); }

  // One that is under way. Outlived by the TlsHandshakes.
  class Mark {
   public:
    Mark(TlsHandshakes& all, const std::shared_ptr<FdWait>& fd) : all_(all) {
      place_ = all_.list_.insert(all_.list_.end(), fd);
      if (all_.list_.size() > all_.most_) all_.give_up_oldest();
    }
    ~Mark() { all_.list_.erase(place_); }
    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;

   private:
    TlsHandshakes& all_;
    std::list<std::shared_ptr<FdWait>>::iterator place_;
  };

 private:
  // Its task takes it off the list.
  void give_up_oldest() {
    for (const auto& fd : list_) {
      if (fd->closed()) continue;
      fd->close();
      return;
    }
  }

  const size_t most_;
  std::list<std::shared_ptr<FdWait>> list_;
};

}  // namespace alcove::net
