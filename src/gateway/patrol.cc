// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/patrol.h"

namespace alcove::gateway {

void Patrol::add(Patrolled& patrolled) {
  patrolled.seen_ = false;
  list_.push_back(patrolled);
  schedule();
}

void Patrol::remove(Patrolled& patrolled) {
  // Qualified: a request is on other lists too.
  if (patrolled.PatrolHook::is_linked()) patrolled.PatrolHook::unlink();
}

void Patrol::schedule() {
  if (scheduled_) return;
  scheduled_ = true;
  timer_.expires_after(round_);
  timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (error || !self) return;
    self->scheduled_ = false;
    self->walk();
  });
}

void Patrol::walk() {
  // Those seen in the last round are at the front.
  while (!list_.empty() && list_.front().seen_) {
    Patrolled& patrolled = list_.front();
    list_.pop_front();
    patrolled.still_here();
  }
  for (Patrolled& patrolled : list_) patrolled.seen_ = true;
  if (!list_.empty()) schedule();
}

}  // namespace alcove::gateway
