// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "interpreter/kernel.h"
#include "interpreter/run_stream.h"
#include "net/notifier.h"

namespace alcove::interpreter {

// A kernel with an identity: executions in the order of their arrival, one at a time; a kernel that
// dies is replaced under the same id. Belongs to one loop; shared with the tasks that use it.
class Context : public std::enable_shared_from_this<Context> {
 public:
  using MakeKernel = std::function<Result<std::unique_ptr<Kernel>>()>;

  struct Info {
    std::string id;
    std::string language;
    std::string cwd;
  };

  // With a run that nobody hears any more and that does not stop. Its kernel holds the variables:
  // it is ended for somebody who waits, or after a long time.
  struct Patience {
    // After these times it is asked again, if the interrupt has not arrived.
    std::chrono::milliseconds second{300};
    std::chrono::milliseconds third{1000};
    // After this time a waiting run counts; without one, after the second of these.
    std::chrono::milliseconds for_others{3000};
    std::chrono::milliseconds alone{60'000};
    // After a last interrupt.
    std::chrono::milliseconds last{1000};
  };

  Context(const boost::asio::any_io_executor& executor, Info info, MakeKernel make_kernel)
      : Context(executor, std::move(info), std::move(make_kernel), Patience()) {}
  Context(const boost::asio::any_io_executor& executor, Info info, MakeKernel make_kernel,
          Patience patience)
      : executor_(executor),
        info_(std::move(info)),
        make_kernel_(std::move(make_kernel)),
        patience_(patience),
        changed_(executor) {}

  const Info& info() const { return info_; }

  // Starts the kernel, if there is none.
  Task<Result<void>> warm_up();
  // Queues the code and returns; the stream is closed when it is over.
  void run(Execution execution, std::shared_ptr<RunStream> stream);
  // The stream's client is gone: its run is stopped, or forgotten if it has not begun.
  void cancel(std::shared_ptr<RunStream> stream);
  Task<Result<void>> restart();
  // Ends everything; what is under way or waits is told so.
  Task<void> remove();

 private:
  // A place in the queue; the first one has the kernel.
  enum class Place { kLast, kNext };
  uint64_t line_up(Place place);
  Task<void> wait_for_turn(uint64_t ticket);
  void leave();

  Task<void> run_in_turn(Execution execution, std::shared_ptr<RunStream> stream);
  Task<void> run_code(const Execution& execution, RunStream& stream);
  bool executes(const std::shared_ptr<RunStream>& stream) const;
  Task<void> stop_run(std::shared_ptr<RunStream> stream);
  // Until the run is over, and at most until then.
  Task<void> wait_for_end(std::shared_ptr<RunStream> stream,
                          std::chrono::steady_clock::time_point until);
  // A run whose client is there waits for its turn.
  bool others_wait() const;
  // What is under way ends, whoever waits for it.
  Task<void> end_current();
  Task<Result<void>> ensure_kernel();
  // Takes a place in the queue to have a kernel; a fresh one if `anew`.
  Task<Result<void>> start_in_turn(Place place, bool anew);
  Task<void> drop_kernel();

  boost::asio::any_io_executor executor_;
  Info info_;
  MakeKernel make_kernel_;
  Patience patience_;
  std::shared_ptr<Kernel> kernel_;
  // Notified when the queue or the run changes.
  net::Notifier changed_;
  std::deque<uint64_t> queue_;
  uint64_t last_ticket_ = 0;
  std::deque<std::shared_ptr<RunStream>> waiting_;
  // The run that has the kernel.
  std::shared_ptr<RunStream> current_;
  bool executing_ = false;
  bool starting_ = false;
  // The last time that a kernel was to be made.
  bool start_failed_ = false;
  uint64_t restarts_ = 0;
  // A kernel with somebody's variables ended, and nobody was told.
  bool lost_state_ = false;
  bool removed_ = false;
};

}  // namespace alcove::interpreter
