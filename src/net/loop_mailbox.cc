// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/loop_mailbox.h"

#include <utility>

#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>

namespace alcove::net {
namespace {

namespace asio = boost::asio;

// Tells the mailbox about the end of its loop.
class MailboxService final : public asio::execution_context::service {
 public:
  using key_type = MailboxService;
  static asio::execution_context::id id;

  explicit MailboxService(asio::execution_context& context)
      : service(context),
        mailbox_(
            std::make_shared<LoopMailbox>(static_cast<asio::io_context&>(context).get_executor())) {
  }

  const std::shared_ptr<LoopMailbox>& mailbox() const { return mailbox_; }

 private:
  void shutdown() override { mailbox_->close(); }

  std::shared_ptr<LoopMailbox> mailbox_;
};

asio::execution_context::id MailboxService::id;

}  // namespace

LoopMailbox::LoopMailbox(asio::any_io_executor executor) : executor_(std::move(executor)) {}

std::shared_ptr<LoopMailbox> LoopMailbox::of(const asio::any_io_executor& executor) {
  auto& context = asio::query(executor, asio::execution::context);
  return asio::use_service<MailboxService>(context).mailbox();
}

void LoopMailbox::post(std::function<void()> message) {
  const std::lock_guard lock(mutex_);
  if (open_) asio::post(executor_, std::move(message));
}

void LoopMailbox::close() {
  const std::lock_guard lock(mutex_);
  open_ = false;
}

}  // namespace alcove::net
