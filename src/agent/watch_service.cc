// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/watch_service.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <boost/asio/this_coro.hpp>

#include "agent/outbox.h"
#include "agent/watch_task.h"
#include "base/ids.h"
#include "base/strings.h"
#include "net/task_group.h"

namespace alcove::agent {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Reads of the kernel's queue for one poll: events that go on for ever must not hold it up.
constexpr int kMostTakes = 64;

Task<void> collect_events(WatchTask& watch, Outbox& outbox, net::Notifier& room) {
  for (;;) {
    while (!outbox.has_room()) co_await room.wait();
    auto events = Result<std::vector<FilesystemEvent>>();
    if (const auto ready = co_await watch.wait(); !ready) {
      events = fail(ready.error());
    } else {
      events = co_await watch.take();
    }
    if (!events) {
      outbox.close(events.error());
      co_return;
    }
    for (const FilesystemEvent& event : *events) {
      append_watch_event(outbox.codec, event, outbox.pending);
    }
    outbox.added();
  }
}

// Entries are read through links, which lead anywhere.
FileThreads threads_for(FilePools& pools, const WatchRequest& request) {
  if (request.options.include_entry) return pools.anywhere();
  if (!request.options.recursive) return pools.at(request.path);
  return pools.below(request.path, MountPoints::Walk::kTree);
}

Task<Result<std::unique_ptr<WatchTask>>> open(FilePools& pools, WatchRequest request,
                                              std::shared_ptr<const Accounts> accounts) {
  const FileThreads threads = threads_for(pools, request);
  return WatchTask::open(*threads.pool, std::move(request.path), request.options,
                         std::move(accounts));
}

Error unknown_watcher(const std::string& id) {
  return Error(Code::kNotFound, cat("watcher '", id, "' not found"));
}

}  // namespace

Task<void> stream_watch(http::Exchange& exchange, connect::CallInfo call, FilePools& pools,
                        WatchRequest request, std::shared_ptr<const Accounts> accounts) {
  auto watch = co_await while_client_waits(exchange, call.deadline,
                                           open(pools, request, std::move(accounts)));
  if (!watch) {
    connect::StreamWriter writer(exchange, call);
    (void)co_await writer.finish(watch.error());
    co_return;
  }
  const auto executor = co_await boost::asio::this_coro::executor;
  const auto outbox = std::make_shared<Outbox>(executor, call.codec);
  append_watch_start(call.codec, outbox->pending);
  net::Notifier room(executor);
  net::TaskGroup group(executor);
  group.spawn(collect_events(**watch, *outbox, room));
  co_await send_outbox(
      exchange, call, outbox,
      {.append_keepalive = append_watch_keepalive, .taken = [&room] { room.notify_all(); }});
  co_await group.stop();
}

struct PolledWatchers::Watcher {
  Watcher(const boost::asio::any_io_executor& executor, size_t limit)
      : most_events(limit), changed(executor), group(executor) {}

  bool has_room() const { return events.size() < most_events; }
  void fail_with(Error error) {
    // The end of a task of ours says nothing about the watch.
    if (failure || error.code() == Code::kCanceled) return;
    failure = std::move(error);
    events = std::vector<FilesystemEvent>();
    changed.notify_all();
  }
  void stop(Error why) {
    fail_with(std::move(why));
    group.cancel();
  }

  const size_t most_events;
  std::unique_ptr<WatchTask> watch;
  std::vector<FilesystemEvent> events;
  std::optional<Error> failure;
  // Calls of take(), and how many of them find in `events` all that they are to get.
  uint64_t asked = 0;
  uint64_t answered = 0;
  bool draining = false;
  // Notified when there is room again, when somebody is answered and of a failure.
  net::Notifier changed;
  SteadyClock::time_point last_asked = SteadyClock::now();
  net::TaskGroup group;
};

PolledWatchers::PolledWatchers(const boost::asio::any_io_executor& executor, FilePools& pools,
                               Limits limits)
    : executor_(executor), pools_(pools), limits_(limits), timer_(executor) {}

PolledWatchers::~PolledWatchers() {
  for (const auto& [id, watcher] : watchers_) watcher->group.cancel();
}

Task<Result<std::string>> PolledWatchers::create(WatchRequest request,
                                                 std::shared_ptr<const Accounts> accounts) {
  if (watchers_.size() >= limits_.watchers) {
    co_return fail(Code::kResourceExhausted,
                   cat("there are ", limits_.watchers, " watchers already: remove some"));
  }
  auto watcher = std::make_shared<Watcher>(executor_, limits_.events);
  ALCOVE_CO_TRY_ASSIGN(watcher->watch,
                       co_await open(pools_, std::move(request), std::move(accounts)));
  watcher->group.spawn(collect(watcher));
  std::string id = cat("w", random_alphanumeric(20));
  watchers_[id] = std::move(watcher);
  arm_timer();
  co_return id;
}

// Keeps the watcher in memory until its group cancels this task.
Task<void> PolledWatchers::collect(std::shared_ptr<Watcher> watcher) {
  while (!watcher->failure) {
    if (!watcher->has_room()) {
      co_await watcher->changed.wait();
    } else if (const auto ready = co_await watcher->watch->wait(); !ready) {
      watcher->fail_with(ready.error());
    } else {
      (void)co_await add_events(*watcher);
    }
  }
}

Task<void> PolledWatchers::drain(std::shared_ptr<Watcher> watcher) {
  while (watcher->answered < watcher->asked && !watcher->failure) {
    // Who asks from now on wants what comes from now on, too.
    const uint64_t asked = watcher->asked;
    for (int i = 0; i < kMostTakes && !watcher->failure && watcher->has_room(); ++i) {
      if (!co_await add_events(*watcher)) break;
    }
    watcher->answered = asked;
    watcher->changed.notify_all();
  }
  watcher->draining = false;
}

Task<bool> PolledWatchers::add_events(Watcher& watcher) {
  auto events = co_await watcher.watch->take();
  if (!events) {
    watcher.fail_with(events.error());
  } else if (!watcher.failure) {
    std::move(events->begin(), events->end(), std::back_inserter(watcher.events));
  }
  co_return events && !events->empty() && !watcher.failure;
}

Result<std::shared_ptr<PolledWatchers::Watcher>> PolledWatchers::find(const std::string& id) {
  const auto found = watchers_.find(id);
  if (found == watchers_.end()) return fail(unknown_watcher(id));
  found->second->last_asked = SteadyClock::now();
  return found->second;
}

Task<Result<std::vector<FilesystemEvent>>> PolledWatchers::take(std::string id) {
  ALCOVE_CO_TRY_ASSIGN(const auto watcher, find(id));
  // A client that has just written expects to see it, whether or not collect() had its turn. In the
  // watcher's own task: the client may leave meanwhile, and what is taken then must not be lost.
  const uint64_t number = ++watcher->asked;
  if (!watcher->draining) {
    watcher->draining = true;
    watcher->group.spawn(drain(watcher));
  }
  while (watcher->answered < number && !watcher->failure) co_await watcher->changed.wait();
  if (watcher->failure) co_return fail(*watcher->failure);
  watcher->changed.notify_all();
  co_return std::exchange(watcher->events, {});
}

Result<void> PolledWatchers::remove(const std::string& id) {
  ALCOVE_TRY_ASSIGN(const auto watcher, find(id));
  watcher->stop(unknown_watcher(id));
  watchers_.erase(id);
  return {};
}

void PolledWatchers::remove_idle() {
  const auto before = SteadyClock::now() - limits_.idle;
  std::erase_if(watchers_, [&](const auto& entry) {
    if (entry.second->last_asked > before) return false;
    entry.second->stop(unknown_watcher(entry.first));
    return true;
  });
}

void PolledWatchers::arm_timer() {
  if (timer_armed_ || watchers_.empty()) return;
  timer_armed_ = true;
  auto oldest = SteadyClock::time_point::max();
  for (const auto& [id, watcher] : watchers_) oldest = std::min(oldest, watcher->last_asked);
  timer_.expires_at(oldest + limits_.idle);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    timer_armed_ = false;
    remove_idle();
    arm_timer();
  });
}

}  // namespace alcove::agent
