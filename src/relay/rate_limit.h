// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <algorithm>
#include <chrono>

namespace alcove::relay {

// How fast a sandbox may open connections and flows. Each leaves something on the host for minutes
// after its end (a place in the connection tracking, a local port in TIME_WAIT), which all
// sandboxes share and no count of open sockets bounds.
class RateLimit {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // A browser or an installer opens some hundred within seconds and then few; a crawler without
  // kept connections, two for each page (name and page), a hundred pages a second.
  static constexpr int kBurst = 2000;
  static constexpr int kPerSecond = 200;

  // False if it has to wait.
  bool take(TimePoint now) {
    constexpr auto kInterval =
        std::chrono::steady_clock::duration(std::chrono::seconds(1)) / kPerSecond;
    // The moment at which all that was taken is made up for.
    const TimePoint after = std::max(made_up_, now) + kInterval;
    if (after - now > kBurst * kInterval) return false;
    made_up_ = after;
    return true;
  }

 private:
  TimePoint made_up_ = TimePoint::min();
};

}  // namespace alcove::relay
