// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <memory>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/intrusive/list.hpp>

namespace alcove::gateway {

class PatrolTag;
using PatrolHook =
    boost::intrusive::list_base_hook<boost::intrusive::tag<PatrolTag>,
                                     boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

// Something that wants to be told if it is still there after a while. Leaves the list by itself
// when it is destroyed.
class Patrolled : public PatrolHook {
 public:
  virtual void still_here() = 0;

 protected:
  ~Patrolled() = default;

 private:
  friend class Patrol;
  bool seen_ = false;
};

// Tells those who stay longer than a round or two, once. Most requests are over before: watching
// each of them for its client's leaving would cost more than some requests do.
class Patrol : public std::enable_shared_from_this<Patrol> {
 public:
  static constexpr std::chrono::milliseconds kRound{20};

  explicit Patrol(const boost::asio::any_io_executor& executor,
                  std::chrono::milliseconds round = kRound)
      : timer_(executor), round_(round) {}

  void add(Patrolled& patrolled);
  // Takes it off the list; harmless if it is not on it.
  static void remove(Patrolled& patrolled);

 private:
  using List = boost::intrusive::list<Patrolled, boost::intrusive::base_hook<PatrolHook>,
                                      boost::intrusive::constant_time_size<false>>;

  void schedule();
  void walk();

  boost::asio::steady_timer timer_;
  const std::chrono::milliseconds round_;
  // In the order they came.
  List list_;
  bool scheduled_ = false;
};

}  // namespace alcove::gateway
