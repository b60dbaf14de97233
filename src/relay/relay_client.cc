// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "relay/relay_client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "relay/relay_process.h"
#include "relay/relay_socket.h"
#include "sys/message.h"
#include "sys/process.h"

namespace alcove::relay {
namespace {

constexpr int kTries = 3;
constexpr int kRetryMilliseconds = 500;
constexpr std::chrono::milliseconds kEndTime{500};

Result<void> expect_done(const Answer& answer) {
  if (const auto* failed = std::get_if<Failed>(&answer)) {
    return fail(Code::kInternal, cat("relay: ", failed->message));
  }
  return {};
}

void end_peer(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return;
  const auto pidfd = sys::open_pidfd(peer.pid);
  if (!pidfd) return;
  sys::kill_by_pidfd(pidfd->get());
  (void)sys::wait_by_pidfd(pidfd->get(),
                           std::chrono::steady_clock::now() + std::chrono::seconds(5));
}

}  // namespace

RelayClient::RelayClient(Options options)
    : options_(std::move(options)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Result<std::unique_ptr<RelayClient>> RelayClient::start(Options options) {
  std::unique_ptr<RelayClient> client(new RelayClient(std::move(options)));
  {
    const std::lock_guard guard(client->mutex_);
    ALCOVE_TRY(client->connect());
  }
  client->watcher_ = std::thread([self = client.get()] { self->watch(); });
  return client;
}

RelayClient::~RelayClient() {
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  (void)::eventfd_write(wake_.get(), 1);
  if (watcher_.joinable()) watcher_.join();
}

void RelayClient::end_child() {
  if (child_ < 0) return;
  // It is about to end, or nobody can reach it any more.
  const auto pidfd = sys::open_pidfd(child_);
  if (pidfd && !sys::wait_by_pidfd(pidfd->get(), std::chrono::steady_clock::now() + kEndTime)) {
    sys::kill_by_pidfd(pidfd->get());
  }
  ::waitpid(child_, nullptr, 0);
  child_ = -1;
}

Result<void> RelayClient::spawn() {
  socket_.reset();
  end_child();
  ALCOVE_TRY_ASSIGN(child_, start_relay(options_.program, options_.data_dir, options_.timeout));
  ALCOVE_TRY_ASSIGN(socket_, connect_to_relay(options_.data_dir));
  return {};
}

Result<void> RelayClient::connect() {
  Result<void> connected = try_connect();
  // A relay that answered only some requests knows only some sandboxes.
  if (!connected) socket_.reset();
  return connected;
}

Result<void> RelayClient::try_connect() {
  socket_.reset();
  ++generation_;
  auto running = connect_to_relay(options_.data_dir);
  if (running) {
    socket_ = std::move(*running);
  } else {
    ALCOVE_TRY(spawn());
  }
  // A relay that reads nothing any more must not stop us in the middle of a request.
  const timeval patience{.tv_sec = options_.timeout.count() / 1000,
                         .tv_usec = options_.timeout.count() % 1000 * 1000};
  (void)::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (auto greeted = greet(); !greeted) {
    if (!running) return greeted;
    // One that does not answer, or is of another version.
    end_peer(socket_.get());
    ALCOVE_TRY(spawn());
    ALCOVE_TRY(greet());
  }
  (void)::eventfd_write(wake_.get(), 1);
  return open_all();
}

Result<void> RelayClient::greet() {
  ALCOVE_TRY_ASSIGN(const UniqueFd answers, send(Hello{.resolvers = options_.resolvers}, {}));
  ALCOVE_TRY_ASSIGN(const Answer answer, receive(answers));
  const auto* welcome = std::get_if<Welcome>(&answer);
  if (welcome == nullptr || welcome->version != kProtocolVersion) {
    return fail(Code::kFailedPrecondition, "the relay speaks another version");
  }
  return {};
}

// One that cannot be opened reaches nothing; the others must not suffer.
Result<void> RelayClient::open_all() {
  for (const auto& [id, known] : known_) {
    ALCOVE_TRY_ASSIGN(const UniqueFd answers, send(Open{id, known.policy}, {known.netns->get()}));
    ALCOVE_TRY_ASSIGN(const Answer answer, receive(answers));
    if (const auto done = expect_done(answer); !done) {
      log_warn(cat("egress of sandbox ", id, ": ", done.error().message()));
    }
  }
  return {};
}

Result<UniqueFd> RelayClient::send(const Request& request, const std::vector<int>& fds) {
  ALCOVE_TRY_ASSIGN(auto pair, sys::make_message_pair());
  std::vector<int> all = {pair.second.get()};
  all.insert(all.end(), fds.begin(), fds.end());
  if (!socket_.valid()) return fail(Code::kUnavailable, "the relay is away");
  ALCOVE_TRY(sys::send_message(socket_.get(), encode(request), all));
  return std::move(pair.first);
}

Result<Answer> RelayClient::receive(const UniqueFd& answers) const {
  ALCOVE_TRY_ASSIGN(
      const auto message,
      sys::receive_message(answers.get(), std::chrono::steady_clock::now() + options_.timeout));
  return decode_answer(message.bytes);
}

Result<Answer> RelayClient::call(const Request& request, const std::vector<int>& fds) {
  for (int tried = 1;; ++tried) {
    uint64_t generation = 0;
    auto answer = [&]() -> Result<Answer> {
      auto answers = [&] {
        const std::lock_guard guard(mutex_);
        generation = generation_;
        return send(request, fds);
      }();
      if (!answers) return fail(std::move(answers).error());
      return receive(*answers);
    }();
    if (answer || tried == kTries) return answer;
    const std::lock_guard guard(mutex_);
    // Another thread may have found out first.
    if (stopping_ || generation != generation_) continue;
    if (answer.error().code() == Code::kDeadlineExceeded) end_peer(socket_.get());
    ALCOVE_TRY(connect());
  }
}

RelayClient::Opening RelayClient::begin_open(const SandboxId& id, network::EgressPolicy policy,
                                             Netns netns) {
  Opening opening;
  opening.id = id.str();
  const std::lock_guard guard(mutex_);
  known_[id.str()] = {policy, netns};
  if (auto answers = send(Open{id.str(), policy}, {netns->get()})) {
    opening.answers = std::move(*answers);
  }
  return opening;
}

Result<void> RelayClient::finish_open(Opening opening) {
  if (opening.answers.valid()) {
    if (const auto answer = receive(opening.answers)) return expect_done(*answer);
  }
  Known known;
  {
    const std::lock_guard guard(mutex_);
    const auto found = known_.find(opening.id);
    if (found == known_.end()) return fail(Code::kCanceled, "closed meanwhile");
    known = found->second;
  }
  ALCOVE_TRY_ASSIGN(const Answer answer,
                    call(Open{opening.id, known.policy}, {known.netns->get()}));
  return expect_done(answer);
}

void RelayClient::close(const SandboxId& id) {
  const std::lock_guard guard(mutex_);
  if (known_.erase(id.str()) == 0) return;
  // A relay that is away has forgotten it anyway.
  (void)send(Close{id.str()}, {});
}

Result<void> RelayClient::keep_only(const std::vector<SandboxId>& ids) {
  std::string after;
  for (;;) {
    ALCOVE_TRY_ASSIGN(const Answer answer, call(List{after}, {}));
    const auto* listing = std::get_if<Listing>(&answer);
    if (listing == nullptr) return fail(Code::kInternal, "the relay sent no list");
    if (listing->ids.empty()) return {};
    for (const std::string& id : listing->ids) {
      if (std::ranges::find(ids, id, &SandboxId::str) != ids.end()) continue;
      ALCOVE_TRY(call(Close{id}, {}));
    }
    after = listing->ids.back();
  }
}

Result<void> RelayClient::stop() {
  const std::lock_guard guard(mutex_);
  stopping_ = true;
  (void)::eventfd_write(wake_.get(), 1);
  if (!socket_.valid()) return {};
  if (const auto answers = send(Stop{}, {})) (void)receive(*answers);
  // Its end of the connection closes when it has ended.
  pollfd waiting{socket_.get(), 0, 0};
  const bool ended = ::poll(&waiting, 1, static_cast<int>(options_.timeout.count())) == 1;
  if (!ended) end_peer(socket_.get());
  socket_.reset();
  end_child();
  return {};
}

pid_t RelayClient::pid() const {
  const std::lock_guard guard(mutex_);
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return -1;
  return peer.pid;
}

// Notices at once when the relay dies: until it is back, nothing leaves.
void RelayClient::watch() {
  for (;;) {
    UniqueFd watched;
    uint64_t generation;
    {
      const std::lock_guard guard(mutex_);
      if (stopping_) return;
      generation = generation_;
      // A copy: the socket itself may be closed while we wait.
      if (socket_.valid()) watched.reset(::fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0));
    }
    pollfd waiting[] = {{wake_.get(), POLLIN, 0}, {watched.get(), 0, 0}};
    (void)::poll(waiting, 2, watched.valid() ? -1 : kRetryMilliseconds);
    eventfd_t ignored;
    (void)::eventfd_read(wake_.get(), &ignored);
    const std::lock_guard guard(mutex_);
    if (stopping_) return;
    if (generation != generation_ || (watched.valid() && waiting[1].revents == 0)) continue;
    log_warn("the relay has died; starting it again");
    if (const auto connected = connect(); !connected) {
      log_error(cat("start the relay: ", connected.error().message()));
    }
  }
}

}  // namespace alcove::relay
