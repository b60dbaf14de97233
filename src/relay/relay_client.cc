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
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "relay/relay_process.h"
#include "relay/relay_socket.h"
#include "sys/message.h"
#include "sys/process.h"

namespace alcove::relay {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kTries = 3;
constexpr std::chrono::milliseconds kEndTime{500};

Result<void> expect_done(const Answer& answer) {
  if (const auto* failed = std::get_if<Failed>(&answer)) {
    return fail(Code::kInternal, cat("relay: ", failed->message));
  }
  if (const auto* full = std::get_if<Full>(&answer)) {
    return fail(Code::kResourceExhausted, cat("relay: ", full->message));
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
  ALCOVE_TRY_ASSIGN(socket_, connect_to_relay(options_.data_dir, options_.timeout));
  return {};
}

Result<void> RelayClient::connect() {
  const auto now = steady_clock::now();
  if (now < pause_.next()) {
    return fail(Code::kResourceExhausted, "the relay has died, and is started again in a moment");
  }
  pause_.begin(now);
  Result<void> connected = try_connect();
  // A relay that answered only some requests knows only some sandboxes.
  if (!connected) socket_.reset();
  // Also after a failure: the watcher has to know of the next try.
  (void)::eventfd_write(wake_.get(), 1);
  connected_.notify_all();
  return connected;
}

Result<void> RelayClient::try_connect() {
  socket_.reset();
  ++generation_;
  auto running = connect_to_relay(options_.data_dir, options_.timeout);
  if (running) {
    socket_ = std::move(*running);
  } else {
    ALCOVE_TRY(spawn());
  }
  if (auto greeted = greet(); !greeted) {
    if (!running) return greeted;
    // One that does not answer, or is of another version.
    end_peer(socket_.get());
    ALCOVE_TRY(spawn());
    ALCOVE_TRY(greet());
  }
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
    if (const auto done = take_note(id, answer); !done) {
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

void RelayClient::give_up(uint64_t generation, const Error& error) {
  // Another thread may have found out first.
  if (generation != generation_ || !socket_.valid()) return;
  if (error.code() == Code::kDeadlineExceeded) {
    log_warn("the relay does not answer; it is ended");
    end_peer(socket_.get());
  }
  socket_.reset();
  (void)::eventfd_write(wake_.get(), 1);
}

void RelayClient::wait_for_turn(std::unique_lock<std::mutex>& lock,
                                steady_clock::time_point deadline) {
  const auto until = std::min(deadline, pause_.next());
  connected_.wait_until(lock, until, [this] { return stopping_ || socket_.valid(); });
}

Result<Answer> RelayClient::call(const Request& request, const std::vector<int>& fds) {
  const auto deadline = steady_clock::now() + options_.timeout;
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
    std::unique_lock lock(mutex_);
    if (stopping_) return answer;
    give_up(generation, answer.error());
    if (socket_.valid()) continue;
    wait_for_turn(lock, deadline);
    if (stopping_) return answer;
    if (!socket_.valid()) ALCOVE_TRY(connect());
  }
}

RelayClient::Opening RelayClient::begin_open(const SandboxId& id, network::EgressPolicy policy,
                                             Netns netns) {
  Opening opening;
  opening.id = id.str();
  const std::lock_guard guard(mutex_);
  known_[id.str()] = {policy, netns};
  opening.generation = generation_;
  if (auto answers = send(Open{id.str(), policy}, {netns->get()})) {
    opening.answers = std::move(*answers);
  }
  return opening;
}

Result<void> RelayClient::finish_open(Opening opening) {
  std::optional<Error> failure;
  if (opening.answers.valid()) {
    const auto answer = receive(opening.answers);
    if (answer) {
      const std::lock_guard guard(mutex_);
      return take_note(opening.id, *answer);
    }
    failure = answer.error();
  }
  Known known;
  {
    const std::lock_guard guard(mutex_);
    // It is not asked once more, which would double the wait.
    if (failure) give_up(opening.generation, *failure);
    const auto found = known_.find(opening.id);
    if (found == known_.end()) return fail(Code::kCanceled, "closed meanwhile");
    known = found->second;
  }
  ALCOVE_TRY_ASSIGN(const Answer answer,
                    call(Open{opening.id, known.policy}, {known.netns->get()}));
  const std::lock_guard guard(mutex_);
  return take_note(opening.id, answer);
}

Result<void> RelayClient::take_note(const std::string& id, const Answer& answer) {
  Result<void> done = expect_done(answer);
  if (done) {
    unopened_.erase(id);
  } else if (known_.contains(id)) {
    unopened_.insert(id);
  }
  return done;
}

// There may be room for them by now. Until then they reach nothing.
void RelayClient::open_again() {
  std::set<std::string> ids;
  {
    const std::lock_guard guard(mutex_);
    ids = unopened_;
  }
  for (const std::string& id : ids) {
    uint64_t generation = 0;
    auto answers = [&]() -> Result<UniqueFd> {
      const std::lock_guard guard(mutex_);
      const auto found = known_.find(id);
      if (stopping_ || found == known_.end()) return fail(Code::kCanceled, "closed meanwhile");
      generation = generation_;
      return send(Open{id, found->second.policy}, {found->second.netns->get()});
    }();
    // If the relay is away, the next is told of all.
    if (!answers) continue;
    const auto answer = receive(*answers);
    const std::lock_guard guard(mutex_);
    if (!answer) return give_up(generation, answer.error());
    if (generation == generation_ && take_note(id, *answer)) {
      log_info(cat("egress of sandbox ", id, " works now"));
    }
  }
}

void RelayClient::close(const SandboxId& id) {
  const std::lock_guard guard(mutex_);
  if (known_.erase(id.str()) == 0) return;
  unopened_.erase(id.str());
  // A relay that is away has forgotten it anyway.
  (void)send(Close{id.str()}, {});
}

bool RelayClient::knows(const std::string& id) const {
  const std::lock_guard guard(mutex_);
  return known_.contains(id);
}

Result<void> RelayClient::keep_only(const std::vector<SandboxId>& ids) {
  std::string after;
  for (;;) {
    ALCOVE_TRY_ASSIGN(const Answer answer, call(List{after}, {}));
    const auto* listing = std::get_if<Listing>(&answer);
    if (listing == nullptr) return fail(Code::kInternal, "the relay sent no list");
    if (listing->ids.empty()) return {};
    for (const std::string& id : listing->ids) {
      if (std::ranges::find(ids, id, &SandboxId::str) != ids.end() || knows(id)) continue;
      ALCOVE_TRY(call(Close{id}, {}));
    }
    after = listing->ids.back();
  }
}

Result<void> RelayClient::stop() {
  const std::lock_guard guard(mutex_);
  stopping_ = true;
  (void)::eventfd_write(wake_.get(), 1);
  connected_.notify_all();
  if (!socket_.valid()) {
    // One may run all the same, that was given up or not reached.
    auto running = connect_to_relay(options_.data_dir, options_.timeout);
    if (!running) {
      end_child();
      return {};
    }
    socket_ = std::move(*running);
  }
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

// Whether the relay answers, or has been replaced meanwhile.
bool RelayClient::answers_still() {
  uint64_t generation = 0;
  auto answers = [&] {
    const std::lock_guard guard(mutex_);
    generation = generation_;
    return send(Hello{.resolvers = options_.resolvers}, {});
  }();
  if (answers) {
    const auto answer = receive(*answers);
    if (answer) return true;
    answers = fail(answer.error());
  }
  const std::lock_guard guard(mutex_);
  if (stopping_) return true;
  give_up(generation, answers.error());
  return socket_.valid();
}

// Notices at once when the relay dies, and soon when it hangs: until it is back, nothing leaves.
void RelayClient::watch() {
  for (;;) {
    UniqueFd watched;
    uint64_t generation;
    milliseconds patience = options_.check_every;
    {
      const std::lock_guard guard(mutex_);
      if (stopping_) return;
      generation = generation_;
      // A copy: the socket itself may be closed while we wait.
      if (socket_.valid()) {
        watched.reset(::fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0));
      } else {
        patience = std::chrono::ceil<milliseconds>(
            std::max<steady_clock::duration>(pause_.next() - steady_clock::now(), {}));
      }
    }
    pollfd waiting[] = {{wake_.get(), POLLIN, 0}, {watched.get(), 0, 0}};
    const int ready = ::poll(waiting, 2, static_cast<int>(patience.count()));
    eventfd_t ignored;
    (void)::eventfd_read(wake_.get(), &ignored);
    if (watched.valid() && waiting[1].revents == 0) {
      if (ready != 0) continue;
      if (answers_still()) {
        open_again();
        continue;
      }
    }
    const std::lock_guard guard(mutex_);
    if (stopping_) return;
    if (generation != generation_) continue;
    socket_.reset();
    if (steady_clock::now() < pause_.next()) continue;
    log_warn("the relay has died; starting it again");
    if (const auto connected = connect(); !connected) {
      log_error(cat("start the relay: ", connected.error().message()));
    }
  }
}

}  // namespace alcove::relay
