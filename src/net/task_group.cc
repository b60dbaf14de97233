// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/task_group.h"

#include <list>
#include <utility>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>

#include "net/event_loops.h"
#include "net/notifier.h"

namespace alcove::net {

namespace asio = boost::asio;

struct TaskGroup::State {
  explicit State(asio::any_io_executor used) : executor(used), child_ended(std::move(used)) {}

  void cancel() {
    // Copied, because a child may end while others are told.
    const std::vector<std::shared_ptr<asio::cancellation_signal>> told(children.begin(),
                                                                       children.end());
    for (const auto& child : told) child->emit(asio::cancellation_type::terminal);
  }

  asio::any_io_executor executor;
  std::list<std::shared_ptr<asio::cancellation_signal>> children;
  Notifier child_ended;
  bool stopping = false;
};

TaskGroup::TaskGroup(asio::any_io_executor executor)
    : state_(std::make_shared<State>(std::move(executor))) {}

TaskGroup::~TaskGroup() {
  state_->stopping = true;
  state_->cancel();
}

void TaskGroup::spawn(Task<void> task) {
  if (state_->stopping) return;
  auto signal = std::make_shared<asio::cancellation_signal>();
  const auto place = state_->children.insert(state_->children.end(), signal);
  asio::co_spawn(state_->executor, std::move(task),
                 asio::bind_cancellation_slot(
                     signal->slot(), [state = state_, place](const std::exception_ptr& failure) {
                       log_task_failure(failure);
                       state->children.erase(place);
                       if (state->children.empty()) state->child_ended.notify_all();
                     }));
}

void TaskGroup::cancel() { state_->cancel(); }

Task<void> TaskGroup::stop() {
  const auto state = state_;
  state->stopping = true;
  state->cancel();
  while (!state->children.empty()) co_await state->child_ended.wait();
}

Task<void> TaskGroup::join() {
  const auto state = state_;
  while (!state->children.empty()) co_await state->child_ended.wait();
}

size_t TaskGroup::size() const { return state_->children.size(); }

}  // namespace alcove::net
