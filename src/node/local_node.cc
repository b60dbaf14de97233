// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "node/local_node.h"

#include <poll.h>

#include <algorithm>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "agent/client.h"
#include "base/defer.h"
#include "base/log.h"
#include "base/strings.h"
#include "net/event_loops.h"
#include "net/timer.h"
#include "node/introduce_agent.h"
#include "node/sandbox_log.h"

namespace alcove::node {
namespace asio = boost::asio;

namespace {

// Below this share of free space creates are refused, so that sandboxes that run are not the ones
// who find the disk full.
constexpr double kMinimumFreeShare = 0.05;
// Between looks whether a sandbox has ended. One that takes as long as the second hangs.
constexpr std::chrono::milliseconds kFirstEndPause{2};
constexpr std::chrono::milliseconds kStuck{500};
// Between tries to clear away what an ended sandbox has left.
constexpr std::chrono::milliseconds kFirstRemovalPause{1000};
constexpr std::chrono::milliseconds kLongestRemovalPause{60'000};
// Limits together may exceed the pool, but a single sandbox cannot fill it.
constexpr uint64_t kGreediestDivisor = 2;

// A machine that does not come up is a fault here, whatever the kernel or the agent called it:
// kUnavailable would tell the client to come again.
Error boot_failure(const Error& error) {
  return Error(Code::kInternal, error.message(), error.where());
}

}  // namespace

// What the loop waits for on behalf of one sandbox.
struct LocalNode::Watch {
  explicit Watch(asio::io_context& loop) : exit(loop), expiry(loop) {}
  ~Watch() {
    // The machine owns the descriptor.
    if (exit.is_open()) (void)exit.release();
  }
  asio::posix::stream_descriptor exit;
  asio::steady_timer expiry;
};

LocalNode::LocalNode(Dependencies dependencies, Programs programs)
    : deps_(std::move(dependencies)),
      agent_hash_(std::move(programs.agent)),
      interpreter_hash_(std::move(programs.interpreter)) {}

LocalNode::~LocalNode() { stop(); }

Result<void> LocalNode::check_disk_space() {
  ALCOVE_TRY_ASSIGN(const image::PoolSpace space, deps_.uppers.space());
  if (static_cast<double>(space.free_bytes) <
      kMinimumFreeShare * static_cast<double>(space.total_bytes)) {
    return fail(Code::kUnavailable, "the disk pool is nearly full: kill sandboxes or enlarge it");
  }
  return {};
}

Task<Result<LocalNode::SandboxPtr>> LocalNode::boot(const SandboxId& id,
                                                    const CreateRequest& request,
                                                    const BuildImage& image) {
  sandbox::BootSpec spec;
  spec.id = id;
  spec.pool_key = request.template_record.build_hash;
  spec.layers = image.layers;
  spec.limits = image.limits;
  spec.hostname = image.hostname;
  spec.agent_path = deps_.agents.path(agent_hash_);
  spec.agent_args = {"--listen-fd", "3"};
  if (image.interpreter && !interpreter_hash_.empty()) {
    spec.interpreter_path = deps_.agents.path(interpreter_hash_);
    spec.agent_args.emplace_back("--interpreter");
    spec.agent_args.emplace_back(sandbox::kInterpreterInside);
  }
  if (!request.allow_internet_access.value_or(true)) {
    spec.egress.reach = network::EgressPolicy::Reach::kNone;
  }

  auto made = co_await deps_.kernel_pool.run(
      [this, spec = std::move(spec)]() mutable -> Result<std::unique_ptr<sandbox::Machine>> {
        // The pool works off its queue when the server ends, but nobody waits for this any more.
        if (stopped_) return fail(Code::kUnavailable, "the server is stopping");
        ALCOVE_TRY_ASSIGN(const image::PoolSpace space, deps_.uppers.space());
        const uint64_t limit =
            std::min(spec.limits.disk_bytes, space.free_bytes / kGreediestDivisor);
        ALCOVE_TRY_ASSIGN(const image::Upper upper, deps_.uppers.create(spec.id, limit));
        spec.upper_dir = upper.upper_dir;
        spec.work_dir = upper.work_dir;
        auto machine = deps_.driver.boot(spec);
        if (!machine) (void)deps_.uppers.remove(spec.id);
        return machine;
      });
  if (!made && made.error().code() == Code::kResourceExhausted) {
    // There was too little of what comes and goes, and nothing has been started.
    log_warn(made.error().message());
    co_return fail(Code::kUnavailable, "the machine is short of what a sandbox needs");
  }
  if (!made) co_return fail(boot_failure(std::move(made).error().context("boot sandbox")));

  store::Sandbox record;
  record.id = id;
  record.team = request.team;
  record.template_id = request.template_record.id;
  record.template_alias = request.template_record.name;
  record.build = request.template_record.build;
  record.build_hash = request.template_record.build_hash;
  record.vcpu_count = image.limits.vcpu_count;
  record.memory_bytes = image.limits.memory_bytes;
  record.disk_bytes = image.limits.disk_bytes;
  record.metadata = request.metadata;
  record.secure = request.agent_access == CreateRequest::Access::kToken;
  if (record.secure) record.envd_token = deps_.tokens.agent_token(id);
  if (request.traffic_access == CreateRequest::Access::kToken) {
    record.traffic_token = deps_.tokens.traffic_token(id);
  }
  record.allow_internet_access = request.allow_internet_access;
  record.network_json = request.network_json;
  record.mcp_json = request.mcp_json;
  record.driver = deps_.driver.isolation_class();
  record.machine_record = (*made)->record();
  record.agent_hash = agent_hash_;

  agent::InitRequest init;
  init.sandbox_id = id.str();
  init.template_id = record.template_id.str();
  init.team_id = record.team.str();
  std::map<std::string, std::string> env_vars = image.env_vars;
  for (const auto& [name, value] : request.env_vars) env_vars[name] = value;
  init.env_vars = std::move(env_vars);
  if (record.secure) init.access_token = record.envd_token;
  init.control_token = deps_.tokens.control_token(id);
  init.default_user = image.default_user;
  if (!image.workdir.empty()) init.default_workdir = image.workdir;
  auto introduced = co_await introduce_agent(**made, std::move(init));

  // The life of a sandbox counts from here, not from the arrival of the request.
  record.started_at = deps_.clock.now();
  record.end_at = record.started_at + request.timeout;
  auto sandbox = std::make_shared<RunningSandbox>(std::move(record), deps_.driver.isolation_class(),
                                                  std::move(*made));
  if (!introduced) {
    sandbox->end();
    remove_remains(sandbox);
    co_return fail(boot_failure(std::move(introduced).error().context("introduce agent")));
  }
  co_return sandbox;
}

Task<Result<LiveSandboxPtr>> LocalNode::create(CreateRequest request) {
  ALCOVE_CO_TRY_ASSIGN(const BuildImage image,
                       decode_build_image(request.template_record.build_json));
  ALCOVE_CO_TRY(check_disk_space());
  ALCOVE_CO_TRY_ASSIGN(SandboxPtr sandbox, co_await boot(request.id, request, image));

  auto stored = co_await deps_.store_pool.run(
      [this, sandbox] { return deps_.store.put_sandbox(sandbox->record()); });
  if (!stored) {
    sandbox->end();
    remove_remains(sandbox);
    co_return fail(std::move(stored).error().context("record sandbox"));
  }
  admit(sandbox);
  co_return sandbox;
}

void LocalNode::admit(SandboxPtr sandbox) {
  sandbox->set_end(end_of(sandbox->record().end_at));
  {
    const std::lock_guard lock(mutex_);
    sandboxes_.emplace(sandbox->record().id, sandbox);
  }
  asio::post(deps_.loop, [this, sandbox = std::move(sandbox)] { watch(sandbox); });
}

void LocalNode::watch(SandboxPtr sandbox) {
  if (stopped_ || !sandbox->running()) return;
  const SandboxId id = sandbox->record().id;
  auto watch = std::make_unique<Watch>(deps_.loop);
  watch->exit.assign(sandbox->machine().exit_fd());
  watches_[id] = std::move(watch);
  arm_exit(sandbox);
  arm_expiry(sandbox);
}

void LocalNode::arm_exit(const SandboxPtr& sandbox) {
  const auto found = watches_.find(sandbox->record().id);
  if (found == watches_.end()) return;
  found->second->exit.async_wait(asio::posix::descriptor_base::wait_read,
                                 [this, sandbox](const boost::system::error_code& error) {
                                   if (error || !sandbox->running()) return;
                                   // On a busy loop, asio may tell this one of what it noticed of a
                                   // descriptor that has been given up meanwhile.
                                   if (!has_ended(*sandbox, std::chrono::milliseconds(0)))
                                     return arm_exit(sandbox);
                                   net::spawn(deps_.loop,
                                              [](LocalNode* self, SandboxPtr dead) -> Task<void> {
                                                (void)co_await self->retire(dead, Ending::kDied);
                                              }(this, sandbox));
                                 });
}

void LocalNode::arm_expiry(const SandboxPtr& sandbox) {
  const auto found = watches_.find(sandbox->record().id);
  if (found == watches_.end()) return;
  asio::steady_timer& timer = found->second->expiry;
  timer.expires_at(sandbox->end_time().expiry);
  timer.async_wait([this, sandbox](const boost::system::error_code& error) {
    if (error || !sandbox->running()) return;
    net::spawn(deps_.loop, [](LocalNode* self, SandboxPtr expired) -> Task<void> {
      (void)co_await self->retire(expired, Ending::kTimeout);
    }(this, sandbox));
  });
}

Task<Result<void>> LocalNode::retire(SandboxPtr sandbox, Ending ending) {
  const SandboxId id = sandbox->record().id;
  {
    const std::lock_guard lock(mutex_);
    // It was given more time in this very moment; its timer is set anew.
    if (ending == Ending::kTimeout &&
        sandbox->end_time().expiry > std::chrono::steady_clock::now()) {
      co_return Result<void>{};
    }
    if (sandboxes_.erase(id) == 0) co_return Result<void>{};
    ending_.insert(id);
  }
  Log processes;
  if (ending != Ending::kDied) processes = co_await fetch_process_lines(sandbox, kFetchBeforeEnd);
  sandbox->end();
  const LogEntry last = ended_line(deps_.clock.now(), ending);
  log_debug(cat(id.str(), ": ", last.message));
  sandbox->note(last);
  asio::post(deps_.loop, [this, id] { watches_.erase(id); });
  auto job = [this, sandbox, lines = std::move(processes)]() mutable {
    return store_end(sandbox->record(), whole_log(*sandbox, std::move(lines)));
  };
  auto stored = co_await deps_.store_pool.run(std::move(job));
  {
    const std::lock_guard lock(mutex_);
    ending_.erase(id);
  }
  if (!stored) {
    // It is dead all the same; the next start finds the record without a machine and drops it.
    log_error(cat("forget sandbox ", id.str(), ": ", stored.error().message()));
  }
  remove_remains(std::move(sandbox));
  co_return stored;
}

void LocalNode::remove_remains(SandboxPtr sandbox) {
  asio::post(deps_.loop, [this, sandbox = std::move(sandbox)] {
    net::spawn(deps_.loop, remove_when_ended(sandbox));
  });
}

bool LocalNode::has_ended(RunningSandbox& sandbox, std::chrono::milliseconds wait) {
  pollfd ended{sandbox.machine().exit_fd(), POLLIN, 0};
  return ::poll(&ended, 1, static_cast<int>(wait.count())) == 1;
}

Result<void> LocalNode::clear_away(RunningSandbox& sandbox) {
  const SandboxId& id = sandbox.record().id;
  auto destroyed = sandbox.machine().destroy();
  if (!destroyed) log_warn(cat("clean up sandbox ", id.str(), ": ", destroyed.error().message()));
  auto removed = deps_.uppers.remove(id);
  if (!removed) {
    log_warn(cat("delete files of sandbox ", id.str(), ": ", removed.error().message()));
  }
  return destroyed ? removed : destroyed;
}

Task<void> LocalNode::remove_when_ended(SandboxPtr sandbox) {
  for (auto pause = kFirstEndPause;; pause = std::min(2 * pause, kLongestRemovalPause)) {
    if (stopped_) co_return;
    // A thread of the pool is not for waiting for a process that hangs in the kernel.
    if (has_ended(*sandbox, std::chrono::milliseconds(0))) {
      auto gone = co_await deps_.kernel_pool.run([this, sandbox] { return clear_away(*sandbox); });
      if (gone) co_return;
      pause = std::max(pause, kFirstRemovalPause);
    } else if (pause >= kStuck) {
      (void)co_await deps_.kernel_pool.run([sandbox]() -> Result<void> {
        sandbox->machine().free_stuck();
        return {};
      });
    }
    co_await net::sleep_for(pause);
  }
}

LocalNode::SandboxPtr LocalNode::find_running(const SandboxId& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = sandboxes_.find(id);
  return found == sandboxes_.end() ? nullptr : found->second;
}

LiveSandboxPtr LocalNode::find(const SandboxId& id) const { return find_running(id); }

std::vector<LiveSandboxPtr> LocalNode::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<LiveSandboxPtr> all;
  all.reserve(sandboxes_.size());
  for (const auto& [id, sandbox] : sandboxes_) all.push_back(sandbox);
  return all;
}

std::optional<TeamId> LocalNode::find_unclear(const SandboxId& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(unclear_, id, &store::Sandbox::id);
  return found == unclear_.end() ? std::nullopt : std::optional(found->team);
}

std::vector<LocalNode::SandboxPtr> LocalNode::running() const {
  const std::lock_guard lock(mutex_);
  std::vector<SandboxPtr> all;
  all.reserve(sandboxes_.size());
  for (const auto& [id, sandbox] : sandboxes_) all.push_back(sandbox);
  return all;
}

Task<Result<bool>> LocalNode::kill(SandboxId id) {
  if (SandboxPtr sandbox = find_running(id)) {
    ALCOVE_CO_TRY(co_await retire(std::move(sandbox), Ending::kRequest));
    co_return true;
  }
  co_return co_await wait_while_ending(std::move(id));
}

Task<bool> LocalNode::wait_while_ending(SandboxId id) const {
  bool waited = false;
  asio::steady_timer pause(co_await asio::this_coro::executor);
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (!ending_.contains(id)) co_return waited;
    }
    waited = true;
    pause.expires_after(std::chrono::milliseconds(2));
    (void)co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

void LocalNode::stop() {
  stopped_ = true;
  watches_.clear();
}

}  // namespace alcove::node
