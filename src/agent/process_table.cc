// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/process_table.h"

#include <algorithm>
#include <utility>

#include "agent/root_mount.h"
#include "base/defer.h"
#include "base/strings.h"
#include "net/event_loops.h"
#include "net/notifier.h"

namespace alcove::agent {
namespace {

// A process that lives and is no older than this has not been waited for by anybody yet: others are
// being started, too.
constexpr std::chrono::milliseconds kYoungTime{20};

bool matches(const ProcessSelector& selector, uint32_t pid, const std::optional<std::string>& tag) {
  if (const auto* by_pid = std::get_if<ByPid>(&selector)) return by_pid->pid == pid;
  if (const auto* by_tag = std::get_if<ByTag>(&selector)) return tag && *tag == by_tag->tag;
  return false;
}

std::string describe(const ProcessSelector& selector) {
  if (const auto* by_pid = std::get_if<ByPid>(&selector)) return cat("pid ", by_pid->pid);
  if (const auto* by_tag = std::get_if<ByTag>(&selector)) return cat("tag '", by_tag->tag, "'");
  return "no selector";
}

}  // namespace

ProcessTable::ProcessTable(const boost::asio::any_io_executor& executor, ChildReaper& reaper,
                           SpawnPools& pools)
    : executor_(executor), reaper_(reaper), pools_(pools), timer_(executor) {}

struct ProcessTable::SlowStart {
  explicit SlowStart(const boost::asio::any_io_executor& executor) : done(executor) {}

  std::optional<Result<std::shared_ptr<Process>>> outcome;
  bool is_given_up = false;
  net::Notifier done;
};

std::shared_ptr<Process> ProcessTable::add(Wanted& wanted, Spawned spawned) {
  const auto pid = static_cast<uint32_t>(spawned.pid);
  journal_.started(wanted.config, pid);
  ProcessInfo info{std::move(wanted.config), pid, std::move(wanted.tag)};
  auto process = std::make_shared<Process>(executor_, std::move(info), std::move(spawned));
  if (wanted.deadline) process->set_deadline(*wanted.deadline);
  live_.push_back(process);
  return process;
}

Task<Result<std::shared_ptr<Process>>> ProcessTable::start_near(std::shared_ptr<Wanted> wanted) {
  // A command that looks for one that was killed just before must not find a zombie.
  reaper_.collect();
  if (!has_young_process()) {
    // To another thread and back takes as long as half of a small program's life.
    if (!starts_on_root_mount(wanted->spec)) co_return nullptr;
    ALCOVE_CO_TRY_ASSIGN(auto spawned, spawn(wanted->spec));
    auto process = add(*wanted, std::move(spawned));
    reaper_.watch(static_cast<pid_t>(process->info().pid),
                  [process](int wait_status) { process->exited(wait_status); });
    co_return process;
  }
  // When many are started at once, threads do it side by side.
  const auto start = reaper_.expect_start();
  const Defer forget([&] { reaper_.forget_start(start); });
  auto job = [wanted, start]() -> Result<std::optional<Spawned>> {
    if (!starts_on_root_mount(wanted->spec)) return std::nullopt;
    return spawn(wanted->spec, start->pid);
  };
  ALCOVE_CO_TRY_ASSIGN(auto spawned, co_await pools_.root.run(std::move(job)));
  if (!spawned) co_return nullptr;
  auto process = add(*wanted, *std::move(spawned));
  reaper_.watch(start, [process](int wait_status) { process->exited(wait_status); });
  co_return process;
}

bool ProcessTable::has_young_process() const {
  return !live_.empty() &&
         std::chrono::steady_clock::now() - live_.back()->started_at() < kYoungTime;
}

Task<Result<std::shared_ptr<Process>>> ProcessTable::start_anywhere(
    std::shared_ptr<Wanted> wanted) {
  const auto start = std::make_shared<SlowStart>(executor_);
  // Also when this task is canceled.
  const Defer give_up([start] { start->is_given_up = true; });
  net::spawn(executor_, start_slowly(std::move(wanted), start));
  while (!start->outcome) co_await start->done.wait();
  co_return *std::move(start->outcome);
}

Task<void> ProcessTable::start_slowly(std::shared_ptr<Wanted> wanted,
                                      std::shared_ptr<SlowStart> slow) {
  const auto start = reaper_.expect_start();
  auto job = [wanted, start] { return spawn(wanted->spec, start->pid); };
  auto spawned = co_await pools_.mounts.run(std::move(job));
  if (!spawned) {
    reaper_.forget_start(start);
    slow->outcome = fail(std::move(spawned).error());
  } else {
    auto process = add(*wanted, *std::move(spawned));
    reaper_.watch(start, [process](int wait_status) { process->exited(wait_status); });
    if (slow->is_given_up) run(process);
    slow->outcome = std::move(process);
  }
  slow->done.notify_all();
}

void ProcessTable::run(const std::shared_ptr<Process>& process) {
  process->start([this](Process& over) { ended(over); });
}

Result<std::shared_ptr<Process>> ProcessTable::find(const ProcessSelector& selector) const {
  if (std::holds_alternative<std::monostate>(selector)) {
    return fail(Code::kUnimplemented, "the request names no process");
  }
  // The latest first: a pid may be reused while its former owner's outputs are still open.
  const auto found = std::find_if(live_.rbegin(), live_.rend(), [&](const auto& process) {
    return matches(selector, process->info().pid, process->info().tag);
  });
  if (found == live_.rend()) {
    return fail(Code::kNotFound, cat("process with ", describe(selector), " not found"));
  }
  return *found;
}

std::optional<ProcessTable::Ended> ProcessTable::find_ended(const ProcessSelector& selector) const {
  const auto now = std::chrono::steady_clock::now();
  const auto found = std::find_if(retained_.rbegin(), retained_.rend(), [&](const Retained& r) {
    return r.until > now && matches(selector, r.pid, r.tag);
  });
  if (found == retained_.rend()) return {};
  return Ended{found->pid, describe_exit(found->wait_status)};
}

std::vector<ProcessInfo> ProcessTable::list() const {
  std::vector<ProcessInfo> infos;
  infos.reserve(live_.size());
  for (const auto& process : live_) infos.push_back(process->info());
  return infos;
}

void ProcessTable::ended(Process& process) {
  journal_.ended(process.info().pid, process.wait_status());
  retained_.push_back({process.info().pid, process.wait_status(), process.info().tag,
                       std::chrono::steady_clock::now() + kRetention});
  std::erase_if(live_, [&](const auto& other) { return other.get() == &process; });
  arm_timer();
}

void ProcessTable::evict() {
  const auto now = std::chrono::steady_clock::now();
  while (!retained_.empty() && retained_.front().until <= now) retained_.pop_front();
  if (retained_.empty()) retained_.shrink_to_fit();
}

void ProcessTable::arm_timer() {
  if (timer_armed_ || retained_.empty()) return;
  timer_armed_ = true;
  // One wake-up for all of them; those that are too old are not found any more before it.
  timer_.expires_at(retained_.back().until);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    timer_armed_ = false;
    evict();
    arm_timer();
  });
}

}  // namespace alcove::agent
