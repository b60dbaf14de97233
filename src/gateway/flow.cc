// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/flow.h"

#include <chrono>
#include <exception>
#include <string_view>
#include <utility>

#include <boost/asio/this_coro.hpp>

#include "base/defer.h"
#include "base/log.h"
#include "base/strings.h"
#include "gateway/shared_origin.h"

namespace alcove::gateway {

namespace asio = boost::asio;

namespace {

// The body of an answer up to this length follows its head at once, so the head may wait for it
// and go out in the same packet.
constexpr uint64_t kSoonComplete = 64 * 1024;

// Lines about a lack of this machine, of one loop.
constexpr std::chrono::seconds kBetweenComplaints{1};

// A message that is not HTTP, or (kInternal) whose head must not be passed on.
bool is_malformed(const Error& error) {
  return error.code() == Code::kInvalidArgument || error.code() == Code::kInternal;
}

}  // namespace

Flow::Flow(std::shared_ptr<LoopState> loop, http::Exchange& exchange,
           std::shared_ptr<SandboxTraffic> traffic, ToSandbox destination, Patience patience,
           Effect effect)
    : loop_(std::move(loop)),
      exchange_(exchange),
      traffic_(std::move(traffic)),
      port_(destination.port),
      service_{.port = destination.port},
      prefix_(std::move(destination.prefix)),
      patience_(patience),
      effect_(effect),
      has_body_(announces_body(exchange.request())),
      upgrade_(requested_upgrade(exchange.request(), port_)),
      side_(loop_->executor),
      first_of_request_(loop_->executor),
      first_of_answer_(loop_->executor) {
  traffic_->add(*this);
}

Task<void> Flow::run() {
  // A canceled handler must still wait for its side tasks: they refer to this object.
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  note_start();
  std::exception_ptr failure;
  try {
    co_await forward();
  } catch (...) {
    failure = std::current_exception();
    cut();
  }
  // Of a client that left, the connection is closed, however complete both messages are.
  const bool reusable = upload_complete_ && !client_gone_ && upstream_ && upstream_->reusable();
  if (!reusable && upstream_) upstream_->stream().close();
  co_await stop_sides();
  if (reusable) loop_->table->keep(*traffic_, service_, *std::move(upstream_));
  note_start();
  co_await asio::this_coro::throw_if_cancelled(throws);
  if (failure) std::rethrow_exception(failure);
}

void Flow::sandbox_ended() {
  // Before a head was sent, the failing connection leads to an answer that says what happened.
  if (dialing_ != nullptr) dialing_->break_off();
  if (upstream_) upstream_->stream().abort();
  if (answering_) exchange_.abort();
}

void Flow::still_here() {
  if (tunneling_) return tunnel_stuck();
  if (dialing_ == nullptr && !side_.running()) return side_.start(watch());
  // The service does not open its port, or does not take the body: meanwhile nobody reads from the
  // client, whose end may lie behind much data.
  if (exchange_.client_hung_up()) return client_left();
  loop_->patrol->add(*this);
}

Task<void> Flow::forward() {
  auto made = make_upstream_head(exchange_.request(), upgrade_);
  if (!made) co_return co_await refuse_request();
  http::RequestHead head = *std::move(made);
  if (!prefix_.empty()) enter_shared(head, prefix_);
  mask_host(head, traffic_->ingress(), port_);
  if (!prefix_.empty()) asked_host_ = head.headers.get("Host").value_or("");
  // A service may close an idle connection at any moment, perhaps while a request is on its way.
  // So only what can be sent again goes over a kept one; the agent does not close first.
  const bool repeatable = !has_body_ && is_idempotent(head);
  const bool may_reuse = port_ == kAgentPort || repeatable;
  if (traffic_->ingress().speaks_tls(port_)) {
    service_.tls_name = server_name(head.headers.get("Host").value_or(""));
  }

  for (bool repeated = false;; repeated = true) {
    if (may_reuse && !repeated) {
      upstream_ = traffic_->idle().take(service_, repeatable ? IfDead::kRepeated : IfDead::kLost,
                                        std::chrono::steady_clock::now());
    }
    const bool reused = upstream_.has_value();
    if (!reused && !co_await connect()) co_return;
    auto response = co_await exchange_heads(head);
    if (response) co_return co_await pass_answer(*std::move(response));

    // A broken answer is one, too: the service has seen the request.
    const bool stale = reused && repeatable && !client_gone_ && traffic_->running() &&
                       !is_malformed(response.error());
    if (!stale) co_return co_await answer_failure(std::move(response).error());
    co_await stop_sides();
    upstream_.reset();
  }
}

Task<bool> Flow::connect() {
  auto stream = co_await dial();
  if (stream && traffic_->running() && !client_gone_) {
    upstream_.emplace(*std::move(stream));
    co_return true;
  }
  if (client_gone_) {
    exchange_.abort();
  } else if (!traffic_->running()) {
    co_await answer(Trouble::kSandboxNotFound);
  } else {
    const DialError& error = stream.error();
    if (error.trouble == Trouble::kNoConnection) complain(error.detail);
    co_await answer(error.trouble);
  }
  co_return false;
}

Task<DialResult> Flow::dial() {
  Dial dial(traffic_->sandbox(), port_,
            {.patience = patience_,
             .tls_name = service_.tls_name,
             .waiting = loop_->waiting.get(),
             .descriptor_limit = loop_->descriptor_limit});
  dialing_ = &dial;
  const Defer ended([this] { dialing_ = nullptr; });
  loop_->patrol->add(*this);
  auto stream = co_await dial.run();
  // What is idle gives way to what is asked for.
  if (!stream && stream.error().trouble == Trouble::kNoConnection && !client_gone_ &&
      loop_->table->drop_idle() > 0) {
    stream = co_await dial.run();
  }
  Patrol::remove(*this);
  co_return stream;
}

void Flow::complain(const std::string& lack) {
  const auto now = std::chrono::steady_clock::now();
  if (now < loop_->next_complaint) return;
  loop_->next_complaint = now + kBetweenComplaints;
  log_error(cat("no connection to port ", port_, " of sandbox ",
                traffic_->sandbox()->record().id.str(), ": ", lack));
}

void Flow::note_start() {
  if (effect_ == Effect::kNone) return;
  loop_->recent_starts->note(traffic_->sandbox()->record().id, std::chrono::steady_clock::now());
}

Task<Result<http::ResponseHead>> Flow::exchange_heads(const http::RequestHead& head) {
  http::BodyLength length = 0;
  std::string_view first;
  bool body_left = has_body_;
  if (has_body_) {
    length = exchange_.body().length();
    upload_buffer_.emplace(loop_->buffers, loop_->silence);
    first_of_request_.begin(exchange_.body(), upload_buffer_->span());
    if (first_of_request_.ready()) {
      const auto read = co_await first_of_request_.result();
      if (read) first = {upload_buffer_->span().data(), *read};
      first_sent_ = !first.empty();
      body_left = length != first.size();
    }
  }
  // A failed write is not the end: a service that refuses early has answered before it closed.
  const auto sent = co_await upstream_->write_head(head, length, first);
  if (!sent) upload_refused_ = true;
  if (!sent && is_malformed(sent.error())) {
    // Nothing was sent: the head holds what must not be passed on.
    bad_request_ = true;
    co_return fail(sent.error());
  }
  if (body_left) {
    side_.start(upload());
  } else {
    upload_complete_ = sent.has_value();
    upload_buffer_.reset();
    loop_->patrol->add(*this);
  }
  co_return co_await upstream_->read_head(head.method);
}

Task<void> Flow::upload() {
  co_await asio::this_coro::throw_if_cancelled(false);
  const auto uploaded = co_await upload_rest();
  upload_buffer_.reset();
  if (stopping_sides_) co_return;
  if (!uploaded) {
    bad_request_ = uploaded.error().code() == Code::kInvalidArgument;
    co_return client_left();
  }
  co_await watch();
}

Task<void> Flow::watch() {
  // Whatever the watching waits for next, a canceled task does not wait for it.
  co_await asio::this_coro::throw_if_cancelled(true);
  co_await exchange_.wait_disconnect();
  if (!stopping_sides_) client_left();
}

Task<Result<void>> Flow::upload_rest() {
  // An error of this task is one of the client; the service's only stop the passing on, so that
  // a client that sends all before it reads gets its answer.
  auto read = co_await first_of_request_.result();
  bool sent = first_sent_;
  for (;;) {
    if (!read) co_return fail(std::move(read).error());
    if (*read == 0) break;
    if (!sent && !upload_refused_) {
      upload_refused_ = !co_await upload_piece({upload_buffer_->span().data(), *read});
    }
    if (stopping_sides_ || client_gone_) co_return Result<void>();
    sent = false;
    upload_buffer_->adapt(*read);
    upload_buffer_->begin_read([this] { exchange_.cancel_read(); });
    read = co_await exchange_.body().read(upload_buffer_->span());
    if (upload_buffer_->end_read(read) && !co_await is_canceled()) {
      read = co_await exchange_.body().read(upload_buffer_->span());
    }
  }
  if (!upload_refused_ && co_await upload_piece({})) upload_complete_ = true;
  co_return Result<void>();
}

Task<bool> Flow::upload_piece(std::string_view piece) {
  // Perhaps the next line for a shell.
  note_start();
  loop_->patrol->add(*this);
  const auto sent =
      piece.empty() ? co_await upstream_->finish_body() : co_await upstream_->write_body(piece);
  Patrol::remove(*this);
  co_return sent.has_value();
}

Task<void> Flow::pass_answer(http::ResponseHead head) {
  if (head.status == 101) {
    if (upgrade_ == Upgrade::kRequested) co_return co_await tunnel(std::move(head));
    co_return co_await answer_failure(Error(Code::kInvalidArgument, "unasked switch of protocols"));
  }
  if (head.status < 200 || head.status > 999) {
    co_return co_await answer_failure(Error(Code::kInvalidArgument, "bad status"));
  }
  const bool is_head_request = exchange_.request().method == "HEAD";
  http::BodyLength length = upstream_->body().length();
  if (is_head_request) {
    // What a GET would have had; nothing follows.
    const auto stated = head.headers.get("Content-Length");
    length = stated ? parse_number<uint64_t>(*stated) : std::nullopt;
  }
  if (auto cleaned = clean_answer(head); !cleaned) {
    co_return co_await answer_failure(std::move(cleaned).error());
  }

  if (is_head_request || http::status_has_no_body(head.status)) {
    answering_ = true;
    if (!is_head_request) length = 0;
    auto started = co_await exchange_.start(std::move(head), length);
    if (!exchange_.started()) co_return co_await answer_failure(std::move(started).error());
    if (!started || !co_await exchange_.finish()) cut();
    answering_ = false;
    co_return;
  }
  auto passed = co_await pass_body(std::move(head), length);
  if (passed) co_return;
  if (exchange_.started()) co_return cut();
  co_await answer_failure(std::move(passed).error());
}

Task<Result<size_t>> Flow::begin_answer(http::ResponseHead head, http::BodyLength length,
                                        BodyBuffer& buffer) {
  http::BodyReader& body = upstream_->body();
  if (length && *length > kSoonComplete) {
    answering_ = true;
    ALCOVE_CO_TRY(co_await exchange_.start(std::move(head), length));
    co_return co_await pass_piece(body, buffer);
  }
  if (length) {
    ALCOVE_CO_TRY_ASSIGN(const size_t read, co_await body.read(buffer.span()));
    answering_ = true;
    ALCOVE_CO_TRY(
        co_await exchange_.start_with(std::move(head), length, {buffer.span().data(), read}));
    co_return read;
  }
  // Events may be far apart, and the head must not wait for the first.
  first_of_answer_.begin(body, buffer.span());
  if (first_of_answer_.ready()) {
    ALCOVE_CO_TRY_ASSIGN(const size_t read, co_await first_of_answer_.result());
    answering_ = true;
    ALCOVE_CO_TRY(
        co_await exchange_.start_with(std::move(head), length, {buffer.span().data(), read}));
    co_return read;
  }
  answering_ = true;
  const auto started = co_await exchange_.start(std::move(head), length);
  // The buffer must outlast the read.
  if (!started) {
    co_await first_of_answer_.stop();
    co_return fail(started.error());
  }
  ALCOVE_CO_TRY_ASSIGN(const size_t read, co_await first_of_answer_.result());
  if (read > 0) ALCOVE_CO_TRY(co_await exchange_.write({buffer.span().data(), read}));
  co_return read;
}

Task<Result<size_t>> Flow::pass_piece(http::BodyReader& body, BodyBuffer& buffer) {
  buffer.begin_read([this] { upstream_->stream().cancel_read(); });
  auto read = co_await body.read(buffer.span());
  if (buffer.end_read(read) && !co_await is_canceled()) read = co_await body.read(buffer.span());
  if (read && *read > 0) ALCOVE_CO_TRY(co_await exchange_.write({buffer.span().data(), *read}));
  co_return read;
}

Task<Result<void>> Flow::pass_body(http::ResponseHead head, http::BodyLength length) {
  BodyBuffer buffer(loop_->buffers, loop_->silence);
  auto passed = co_await begin_answer(std::move(head), length, buffer);
  while (passed && *passed > 0) {
    buffer.adapt(*passed);
    passed = co_await pass_piece(upstream_->body(), buffer);
  }
  if (!passed) co_return fail(std::move(passed).error());
  // A body that ends by closing ends so too when the sandbox is killed.
  if (upstream_->body_ends_by_close() && !traffic_->running()) {
    co_return fail(Code::kUnavailable, "the sandbox has ended");
  }
  auto finished = co_await exchange_.finish();
  // The client has it all and may use the connection for its next request.
  answering_ = false;
  co_return finished;
}

Result<void> Flow::clean_answer(http::ResponseHead& head) const {
  ALCOVE_TRY(clean_response_headers(head));
  if (!prefix_.empty()) leave_shared(head.headers, prefix_, asked_host_);
  return {};
}

Task<void> Flow::answer_failure(Error error) {
  upstream_->stream().close();
  co_await stop_sides();
  if (client_gone_ && !bad_request_) co_return exchange_.abort();
  if (bad_request_) co_return co_await refuse_request();
  if (!traffic_->running()) {
    co_await answer(Trouble::kSandboxNotFound);
  } else {
    co_await answer(is_malformed(error) ? Trouble::kBadAnswer : Trouble::kNoAnswer);
  }
}

Task<void> Flow::refuse_request() {
  exchange_.close_after();
  answering_ = true;
  http::Response refusal = make_plain_text(400, "Bad Request");
  if (!prefix_.empty()) add_shared_policy(refusal.headers);
  (void)co_await exchange_.respond(std::move(refusal));
}

Task<void> Flow::answer(Trouble trouble) {
  http::Response page =
      make_error_page(trouble, exchange_.request(), traffic_->sandbox()->record().id, port_,
                      loop_->waiting->limits().of_sandbox);
  if (!prefix_.empty()) add_shared_policy(page.headers);
  (void)co_await exchange_.respond(std::move(page));
}

void Flow::client_left() {
  client_gone_ = true;
  if (dialing_ != nullptr) dialing_->break_off();
  if (upstream_) upstream_->stream().close();
}

void Flow::cut() {
  if (upstream_) upstream_->stream().abort();
  exchange_.abort();
}

Task<bool> Flow::is_canceled() {
  const auto task = co_await asio::this_coro::cancellation_state;
  co_return task.cancelled() != asio::cancellation_type::none;
}

Task<void> Flow::stop_sides() {
  stopping_sides_ = true;
  Patrol::remove(*this);
  if (first_of_request_.running()) co_await first_of_request_.stop();
  if (first_of_answer_.running()) co_await first_of_answer_.stop();
  if (side_.running()) co_await side_.stop();
  stopping_sides_ = false;
}

}  // namespace alcove::gateway
