// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>

#include "base/result.h"
#include "gateway/buffer_pool.h"
#include "gateway/dial.h"
#include "gateway/error_page.h"
#include "gateway/forwarding.h"
#include "gateway/patrol.h"
#include "gateway/recent_starts.h"
#include "gateway/routing.h"
#include "gateway/sandbox_traffic.h"
#include "gateway/side_task.h"
#include "http/client_connection.h"
#include "http/exchange.h"
#include "net/task.h"

namespace alcove::gateway {

// What all requests of one loop share.
struct LoopState {
  boost::asio::any_io_executor executor;
  std::shared_ptr<TrafficTable> table;
  std::shared_ptr<BufferPool> buffers;
  std::shared_ptr<Patrol> patrol;
  // A slow one: reads that wait for long give their large buffers back.
  std::shared_ptr<Patrol> silence;
  // Of all loops.
  std::shared_ptr<RecentStarts> recent_starts;
  std::shared_ptr<WaitingRequests> waiting;
  // How long a tunnel may be silent of which one end has said all.
  std::chrono::milliseconds tunnel_linger;
  // See DialOptions.
  int descriptor_limit;
  // What many requests meet at once is logged once.
  std::chrono::steady_clock::time_point next_complaint = {};
};

// Whether a request runs something in the sandbox that may open a port, as long as it lasts.
enum class Effect { kNone, kStarts };

// One request on its way into a sandbox and its answer on the way back. Lives in the frame of the
// handler, whose task passes the answer on. Beside it, where needed, a second task passes the
// request's body on and then watches for the client's leaving.
//
// Whoever breaks off, the other side sees it at once and never as an orderly end: a client that
// leaves closes the connection to the service; a service or sandbox that dies in the middle of an
// answer resets the client's connection.
class Flow final : public Interruptible, public Patrolled {
 public:
  Flow(std::shared_ptr<LoopState> loop, http::Exchange& exchange,
       std::shared_ptr<SandboxTraffic> traffic, ToSandbox destination, Patience patience,
       Effect effect);
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;
  virtual ~Flow() = default;

  Task<void> run();
  void sandbox_ended() override;
  // Something takes its time: somebody must look whether the client still waits for it.
  void still_here() override;

 private:
  Task<void> forward();
  // Has upstream_ set if true; else the client is answered.
  Task<bool> connect();
  Task<DialResult> dial();
  void complain(const std::string& lack);
  // A service may be about to open its port from now on.
  void note_start();
  Task<Result<http::ResponseHead>> exchange_heads(const http::RequestHead& head);
  Task<void> upload();
  Task<void> watch();
  Task<Result<void>> upload_rest();
  // Passes a piece of the request's body on, or (if empty) its end; false if the service takes no
  // more.
  Task<bool> upload_piece(std::string_view piece);
  Task<void> pass_answer(http::ResponseHead head);
  Task<Result<void>> pass_body(http::ResponseHead head, http::BodyLength length);
  // The head and what is there of the body; how much that was.
  Task<Result<size_t>> begin_answer(http::ResponseHead head, http::BodyLength length,
                                    BodyBuffer& buffer);
  // Reads once and passes it on; 0 at the end of the body.
  Task<Result<size_t>> pass_piece(http::BodyReader& body, BodyBuffer& buffer);
  Task<void> tunnel(http::ResponseHead head);
  Task<void> copy(net::Stream& from, net::Stream& to);
  void tunnel_stuck();
  // Takes from the answer what is not for the client.
  Result<void> clean_answer(http::ResponseHead& head) const;
  Task<void> answer_failure(Error error);
  Task<void> refuse_request();
  Task<void> answer(Trouble trouble);
  void client_left();
  // Ends both sides abruptly.
  void cut();
  Task<void> stop_sides();
  // Whether the task that asks is canceled: a read that it begins now would not be.
  static Task<bool> is_canceled();

  std::shared_ptr<LoopState> loop_;
  http::Exchange& exchange_;
  std::shared_ptr<SandboxTraffic> traffic_;
  const uint16_t port_;
  // Where the connection to the service leads.
  Destination service_;
  // Where the path names the sandbox; else empty.
  const std::string prefix_;
  // With a prefix: the Host that the service gets.
  std::string asked_host_;
  const Patience patience_;
  const Effect effect_;
  const bool has_body_;
  const Upgrade upgrade_;

  // While upstream_ is being connected.
  Dial* dialing_ = nullptr;
  std::optional<http::ClientConnection> upstream_;
  SideTask side_;
  FirstRead first_of_request_;
  FirstRead first_of_answer_;
  std::optional<BodyBuffer> upload_buffer_;
  // The first piece of the body went out with the head.
  bool first_sent_ = false;
  bool upload_complete_ = false;
  // The service takes no more of the body; its answer may still come.
  bool upload_refused_ = false;
  // The request's own framing is broken.
  bool bad_request_ = false;
  bool client_gone_ = false;
  // A head is on its way to the client: from now on failures can only cut the connection.
  bool answering_ = false;
  bool tunneling_ = false;
  // The service must take some of what a client sent through a tunnel before it left.
  bool write_limited_ = false;
  // One end of a tunnel has said all.
  bool half_closed_ = false;
  // The side tasks are being ended: what they see now means nothing.
  bool stopping_sides_ = false;
};

}  // namespace alcove::gateway
