// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "http/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <list>
#include <utility>

#include "base/log.h"
#include "http/head_writer.h"
#include "http/server_connection.h"
#include "net/event_loops.h"
#include "net/fd_wait.h"
#include "net/tcp_stream.h"
#include "net/timer.h"

namespace alcove::http {
namespace {

// Connections taken in one turn of the loop.
constexpr int kAcceptBatch = 64;
// As many as wait at a listener.
constexpr int kLastBatches = 64;
// How long accepting pauses when descriptors or memory are used up.
constexpr std::chrono::milliseconds kAcceptPause{100};

// On a listening socket: those that it accepts have it too. Fails on a Unix socket, which needs
// none of it. A peer that vanished is known after some 4 minutes of silence instead of the kernel's
// 2 hours, and one that is asleep for a moment keeps its connection. No TCP_USER_TIMEOUT: it would
// also cut clients that are alive and stop reading for a while; what a dead one has not
// acknowledged the kernel gives up after 15 minutes (tcp_retries2).
void detect_dead_peer(int socket) {
  const auto set = [socket](int level, int option, int value) {
    (void)::setsockopt(socket, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 120);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 30);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
}

Task<void> refuse_for_now(Exchange& exchange) {
  exchange.close_after();
  (void)co_await exchange.respond(
      {.status = 503,
       .headers = {{"Content-Type", "application/json; charset=utf-8"}, {"Retry-After", "1"}},
       .body = error_body(503, "The server has too many connections")});
}

}  // namespace

struct Server::Impl : std::enable_shared_from_this<Impl> {
  Impl(boost::asio::io_context& used_loop, Handler used_handler, ServerOptions used_options)
      : loop(used_loop),
        handler(std::make_shared<const Handler>(std::move(used_handler))),
        refusal(std::make_shared<const Handler>(refuse_for_now)),
        options(std::move(used_options)) {}

  using Connections = std::list<std::shared_ptr<ServerConnection>>;
  // What becomes of a connection's requests.
  enum class Use { kServed, kRefused };

  void serve_connection(std::unique_ptr<net::Stream> stream, Use use);
  static Task<void> run_connection(std::shared_ptr<Impl> self, Connections::iterator place,
                                   Use use);
  static Task<void> accept_loop(std::shared_ptr<Impl> self, std::shared_ptr<net::FdWait> listener);
  enum class Accepted { kAll, kMore, kExhausted };
  // Takes what waits at the listener, up to a batch.
  Accepted accept_some(int listener);

  boost::asio::io_context& loop;
  std::shared_ptr<const Handler> handler;
  // For connections that are too many.
  std::shared_ptr<const Handler> refusal;
  const ServerOptions options;
  Connections connections;
  // So many of them are only told that there are too many.
  size_t refused = 0;
  std::vector<std::shared_ptr<net::FdWait>> listeners;
  bool stopped = false;
  // Descriptors ran out, which was logged; until the next connection is taken.
  bool exhausted = false;
};

void Server::Impl::serve_connection(std::unique_ptr<net::Stream> stream, Use use) {
  if (connections.size() - refused >= options.max_connections) use = Use::kRefused;
  if (stopped || (use == Use::kRefused && refused >= kMostRefused)) {
    stream->close();
    return;
  }
  auto connection = std::make_shared<ServerConnection>(
      loop.get_executor(), std::move(stream), use == Use::kServed ? handler : refusal, options);
  if (use == Use::kRefused) {
    ++refused;
    // Its request is not waited for as long as others.
    connection->close_when_idle();
  }
  const auto place = connections.insert(connections.end(), std::move(connection));
  net::spawn(loop, run_connection(shared_from_this(), place, use));
}

Task<void> Server::Impl::run_connection(std::shared_ptr<Impl> self, Connections::iterator place,
                                        Use use) {
  ServerConnection& connection = **place;
  try {
    co_await connection.run();
  } catch (const std::exception& error) {
    log_error(error.what());
  }
  if (use == Use::kRefused) --self->refused;
  self->connections.erase(place);
}

Server::Impl::Accepted Server::Impl::accept_some(int listener) {
  const boost::asio::any_io_executor executor = loop.get_executor();
  for (int i = 0; i < kAcceptBatch; ++i) {
    UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.valid()) {
      exhausted = false;
      const Use use = fd.get() < options.descriptor_limit ? Use::kServed : Use::kRefused;
      serve_connection(options.make_stream
                           ? options.make_stream(executor, std::move(fd))
                           : std::make_unique<net::TcpStream>(executor, std::move(fd)),
                       use);
      continue;
    }
    if (errno == EAGAIN) return Accepted::kAll;
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return Accepted::kExhausted;
    }
    // Others are failures of the one connection (accept(2)), gone before it was taken.
  }
  return Accepted::kMore;
}

Task<void> Server::Impl::accept_loop(std::shared_ptr<Impl> self,
                                     std::shared_ptr<net::FdWait> listener) {
  while (!self->stopped) {
    if (!co_await listener->wait(net::FdWait::Direction::kRead)) break;
    switch (self->accept_some(listener->fd())) {
      case Accepted::kAll:
        break;
      case Accepted::kMore:
        co_await net::yield();
        break;
      case Accepted::kExhausted:
        if (!self->exhausted) log_warn("accepting pauses: no file descriptors or memory left");
        self->exhausted = true;
        co_await net::sleep_for(kAcceptPause);
        break;
    }
  }
}

Server::Server(boost::asio::io_context& loop, Handler handler, ServerOptions options)
    : impl_(std::make_shared<Impl>(loop, std::move(handler), std::move(options))) {}

Server::~Server() {
  stop();
  // Copied: closing ends connections, which leave the list.
  const auto connections = impl_->connections;
  for (const auto& connection : connections) connection->close();
}

Result<void> Server::serve(UniqueFd listener) {
  int listening = 0;
  socklen_t size = sizeof listening;
  if (::getsockopt(listener.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0) {
    return fail_errno(errno, "serve");
  }
  if (listening == 0) return fail(Code::kInvalidArgument, "serve: not a listening socket");
  detect_dead_peer(listener.get());
  auto wait = std::make_shared<net::FdWait>(impl_->loop.get_executor(), std::move(listener));
  impl_->listeners.push_back(wait);
  net::spawn(impl_->loop, Impl::accept_loop(impl_, wait));
  return {};
}

void Server::serve_connection(std::unique_ptr<net::Stream> stream) {
  impl_->serve_connection(std::move(stream), Impl::Use::kServed);
}

void Server::stop() {
  for (const auto& listener : impl_->listeners) {
    // Who is connected already, unknown to us, must not be reset.
    for (int i = 0; i < kLastBatches; ++i) {
      if (impl_->accept_some(listener->fd()) != Impl::Accepted::kMore) break;
    }
    listener->close();
  }
  impl_->stopped = true;
  impl_->listeners.clear();
  const auto connections = impl_->connections;
  for (const auto& connection : connections) connection->close_when_idle();
}

size_t Server::connection_count() const { return impl_->connections.size(); }

}  // namespace alcove::http
