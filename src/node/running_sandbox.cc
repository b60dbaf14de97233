// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "node/running_sandbox.h"

#include <utility>

namespace alcove::node {
namespace {

// A client that moves the timeout every few seconds must not fill the memory.
constexpr size_t kMostNotes = 200;

}  // namespace

RunningSandbox::RunningSandbox(store::Sandbox record, std::string isolation_class,
                               std::unique_ptr<sandbox::Machine> machine)
    : record_(std::move(record)),
      isolation_class_(std::move(isolation_class)),
      machine_(std::move(machine)),
      end_{.at = record_.end_at, .expiry = std::chrono::steady_clock::time_point::max()},
      history_(record_.started_at, record_.vcpu_count) {}

WallTime RunningSandbox::end_at() const { return end_time().at; }

RunningSandbox::End RunningSandbox::end_time() const {
  const std::lock_guard lock(records_mutex_);
  return end_;
}

void RunningSandbox::set_end(End end) {
  const std::lock_guard lock(records_mutex_);
  end_ = end;
}

store::Sandbox RunningSandbox::current_record() const {
  store::Sandbox record = record_;
  record.end_at = end_at();
  return record;
}

Result<UniqueFd> RunningSandbox::connect(uint16_t port, sandbox::Machine::Family family) {
  if (!running()) return fail(Code::kNotFound, "the sandbox has ended");
  return machine_->connect(port, family);
}

uint64_t RunningSandbox::on_end(std::function<void()> callback) {
  const std::lock_guard lock(mutex_);
  if (!running()) {
    callback();
    return 0;
  }
  const uint64_t registration = next_registration_++;
  on_end_.emplace(registration, std::move(callback));
  return registration;
}

void RunningSandbox::forget_end(uint64_t registration) {
  const std::lock_guard lock(mutex_);
  on_end_.erase(registration);
}

void RunningSandbox::add_measurement(const UsageHistory::Moment& moment,
                                     const sandbox::Usage& usage, uint64_t disk_used_bytes) {
  const std::lock_guard lock(records_mutex_);
  history_.add(moment, usage, disk_used_bytes);
}

std::vector<Measurement> RunningSandbox::measurements(WallTime from, WallTime until) const {
  const std::lock_guard lock(records_mutex_);
  return history_.between(from, until);
}

std::optional<Measurement> RunningSandbox::last_measurement() const {
  const std::lock_guard lock(records_mutex_);
  return history_.last();
}

void RunningSandbox::note(LogEntry entry) {
  const std::lock_guard lock(records_mutex_);
  notes_.push_back(std::move(entry));
  if (notes_.size() > kMostNotes) notes_.pop_front();
}

Log RunningSandbox::notes() const {
  const std::lock_guard lock(records_mutex_);
  return {notes_.begin(), notes_.end()};
}

bool RunningSandbox::end() {
  const std::lock_guard lock(mutex_);
  if (!running_.exchange(false, std::memory_order_acq_rel)) return false;
  machine_->kill();
  for (auto& [registration, callback] : on_end_) callback();
  on_end_.clear();
  return true;
}

}  // namespace alcove::node
