// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/notifier.h"

#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace alcove::net {

namespace asio = boost::asio;

struct Notifier::Waiters {
  Waiter* first = nullptr;
};

// Lives in the frame of a waiting task, linked while it waits. The timer belongs to the loop, so a
// loop that is destroyed takes the waiting tasks with it.
struct Notifier::Waiter {
  Waiter(std::shared_ptr<Waiters> list, const asio::any_io_executor& executor, TimePoint deadline)
      : waiters(std::move(list)), timer(executor, deadline), next(waiters->first) {
    if (next != nullptr) next->previous = this;
    waiters->first = this;
  }
  ~Waiter() {
    if (next != nullptr) next->previous = previous;
    if (previous != nullptr) {
      previous->next = next;
    } else {
      waiters->first = next;
    }
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  std::shared_ptr<Waiters> waiters;
  asio::steady_timer timer;
  bool notified = false;
  Waiter* next;
  Waiter* previous = nullptr;
};

Notifier::Notifier(asio::any_io_executor executor)
    : executor_(std::move(executor)), waiters_(std::make_shared<Waiters>()) {}

Notifier::~Notifier() { notify_all(); }

Task<void> Notifier::wait() { (void)co_await wait_until(TimePoint::max()); }

Task<bool> Notifier::wait_until(TimePoint deadline) {
  Waiter waiter(waiters_, executor_, deadline);
  (void)co_await waiter.timer.async_wait(asio::as_tuple(asio::use_awaitable));
  co_return waiter.notified;
}

void Notifier::notify_all() {
  for (Waiter* waiter = waiters_->first; waiter != nullptr; waiter = waiter->next) {
    waiter->notified = true;
    waiter->timer.cancel();
  }
}

}  // namespace alcove::net
