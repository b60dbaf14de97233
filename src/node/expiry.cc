// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// When sandboxes end, and how that changes.
#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/log.h"
#include "base/strings.h"
#include "net/event_loops.h"
#include "net/timer.h"
#include "node/clock_mark.h"
#include "node/local_node.h"

namespace alcove::node {
namespace asio = boost::asio;

namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kClockCheck{1};

Error gone(const SandboxId& id) {
  return Error(Code::kNotFound, cat("sandbox ", id.str(), " was not found"));
}

}  // namespace

RunningSandbox::End LocalNode::end_of(WallTime end_at) const {
  return {.at = end_at,
          .expiry = steady_clock::now() +
                    std::chrono::duration_cast<steady_clock::duration>(end_at - deps_.clock.now())};
}

Result<WallTime> LocalNode::change_end(const SandboxId& id, WallTime end_at, Change change) {
  const SandboxPtr sandbox = find_running(id);
  if (!sandbox) return fail(gone(id));
  const std::lock_guard one_at_a_time(sandbox->end_mutex());
  const RunningSandbox::End before = sandbox->end_time();
  const RunningSandbox::End wanted = end_of(end_at);
  if (change == Change::kOnlyLater && before.expiry >= wanted.expiry) return before.at;
  {
    const std::lock_guard lock(mutex_);
    if (!sandboxes_.contains(id)) return fail(gone(id));
    // An expiry that is due in this moment finds the later end already; an earlier one counts once
    // it is durable.
    if (wanted.expiry > before.expiry) sandbox->set_end(wanted);
  }
  auto stored = deps_.store.set_sandbox_end(id, end_at);
  sandbox->set_end(stored ? wanted : before);
  asio::post(deps_.loop, [this, sandbox] { arm_expiry(sandbox); });
  if (!stored) return fail(std::move(stored).error());
  sandbox->note(timeout_line(deps_.clock.now(), end_at));
  return end_at;
}

Task<Result<void>> LocalNode::set_end(SandboxId id, WallTime end_at) {
  ALCOVE_CO_TRY(co_await deps_.store_pool.run(
      [this, id, end_at] { return change_end(id, end_at, Change::kAnyWay); }));
  co_return Result<void>{};
}

Task<Result<WallTime>> LocalNode::extend_end(SandboxId id, WallTime end_at) {
  const SandboxPtr sandbox = find_running(id);
  if (!sandbox) co_return fail(gone(id));
  const RunningSandbox::End end = sandbox->end_time();
  if (end.expiry >= end_of(end_at).expiry) co_return end.at;
  co_return co_await deps_.store_pool.run(
      [this, id, end_at] { return change_end(id, end_at, Change::kOnlyLater); });
}

Task<void> LocalNode::follow_clock() {
  const auto offset = [this] {
    return deps_.clock.now().time_since_epoch() - steady_clock::now().time_since_epoch();
  };
  auto known = offset();
  while (!stopped_) {
    co_await net::sleep_for(kClockCheck);
    const auto now = offset();
    const auto step = now - std::exchange(known, now);
    if (std::chrono::abs(step) < kSmallestClockStep) continue;
    log_warn(cat("the system's clock was set by ",
                 std::chrono::round<std::chrono::seconds>(step).count(),
                 " s; sandboxes end when they would have"));
    auto corrected = co_await deps_.store_pool.run([this]() -> Result<void> {
      ALCOVE_TRY(correct_ends());
      ALCOVE_TRY(note_clock(deps_.store, deps_.clock));
      return {};
    });
    if (!corrected) log_warn(cat("keep the ends of sandboxes: ", corrected.error().message()));
  }
}

void LocalNode::correct_for_clock(std::vector<store::Sandbox>& records) {
  const auto step = note_clock(deps_.store, deps_.clock);
  if (!step) return log_warn(cat("note the system's clock: ", step.error().message()));
  if (*step == WallTime::duration{}) return;
  log_warn(cat("the system's clock was set by ",
               std::chrono::round<std::chrono::seconds>(*step).count(),
               " s since the last server noted it; sandboxes end when they would have"));
  for (store::Sandbox& record : records) record.end_at += *step;
  for (const store::Sandbox& record : records) {
    if (auto stored = deps_.store.set_sandbox_end(record.id, record.end_at); !stored) {
      return log_warn(cat("keep the ends of sandboxes: ", stored.error().message()));
    }
  }
}

Result<void> LocalNode::correct_ends() {
  Result<void> result;
  for (const SandboxPtr& sandbox : running()) {
    const std::lock_guard one_at_a_time(sandbox->end_mutex());
    const auto expiry = sandbox->end_time().expiry;
    const WallTime end_at = deps_.clock.now() + std::chrono::duration_cast<WallTime::duration>(
                                                    expiry - steady_clock::now());
    sandbox->set_end({.at = end_at, .expiry = expiry});
    const SandboxId& id = sandbox->record().id;
    // A store that fails is not asked for each of them.
    if (!result) continue;
    auto stored = deps_.store.set_sandbox_end(id, end_at);
    // Of one that ends meanwhile there is no record.
    if (!stored && stored.error().code() != Code::kNotFound) result = std::move(stored);
  }
  return result;
}

}  // namespace alcove::node
